// The commands, apart from the parsing of their options: every value arrives as the user typed it and is checked here.
// Each returns the exit code.
#pragma once
#include <string>
#include <vector>

namespace sojourn::cli {

struct CompareArgs {
  std::string package = "hcrmap-table1", models = "table2", modes = "prefill,decode", policies;
  std::vector<std::string> traces, settings;
  std::string windows, warmup, seed, network = "packet", threads, mix = "mixed", context, capacity_scope = "package";
  std::string prefill_tokens, decode_tokens, moe_layers, copies, replicas_max, updates_max, age_min, link_threshold,
      ewma_alpha;
  std::string json, report, timeline, timeline_windows;
  bool quiet = false;
};
int compare(const CompareArgs& args);
/// The closed-form lower bound of each model and mode; takes what it needs of the same options.
int bound(const CompareArgs& args);

struct ReplayArgs {
  std::string manifest, threads, json;
  bool quiet = false;
};
int replay(const ReplayArgs& args);

struct ReproduceArgs {
  std::string system, models, policies, windows, seeds, seed, threads, json, report, resume;
  std::vector<std::string> traces;
  bool quick = false, quiet = false;
};
int reproduce(const ReproduceArgs& args);

struct TrainArgs {
  std::string package = "hcrmap-table1", models = "table2", modes = "prefill,decode";
  std::string seed, steps, episode, variants, validations, save_every, prefill_tokens, decode_tokens;
  std::string learn_from, credit, gamma, mu_1, mu_2, out = "hcrmap-dqn.json", json, report;
  bool resume = false, quiet = false;
};
int train(const TrainArgs& args);

struct DescribeArgs {
  std::string kind, name, json;
};
int describe(const DescribeArgs& args);

struct CheckArgs {
  std::vector<std::string> files;
  std::string json;
};
int check(const CheckArgs& args);

struct ValidateArgs {
  std::string reference, json, page, package = "hcrmap-table1", models, policies = "static,hydra,hcrmap", windows;
  bool quiet = false;
};
int validate_network(const ValidateArgs& args);
int validate_memory(const ValidateArgs& args);

/// popnet's option letters.
struct PopnetArgs {
  std::string side, dimensions, vcs, in_buffer, out_buffer, flit_words, link_length, limit, seed, bench, routing, graph;
  std::string delays, report_period, reconfiguration, packet_loss, json;
  bool protocol = false, quiet = false;
};
int popnet_run(const PopnetArgs& args);

struct TraceArgs {
  std::string format, output, json;
  std::vector<std::string> inputs, params;
  std::string layers, experts, top_k, tokens, seed, model, fit;
  bool quiet = false;
};
int trace_import(const TraceArgs& args);
int trace_info(const TraceArgs& args);
int trace_check(const TraceArgs& args);
int trace_export(const TraceArgs& args);
int trace_synth(const TraceArgs& args);

struct ModelImportArgs {
  std::string file, output, json;
};
int model_import(const ModelImportArgs& args);

struct VersionArgs {
  std::string json;
};
int version(const VersionArgs& args);

}  // namespace sojourn::cli
