// The command line: which commands and options there are. What they mean is checked in the commands themselves. This is
// the one file that includes CLI11, which is slow to compile.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/io.h"

namespace sojourn::cli {
namespace {

struct Command {
  CLI::App* app;
  std::function<int()> run;
};

void json_option(CLI::App* app, std::string& target) {
  app->add_option("--json", target, "Write JSON to FILE; '-' is standard output")->type_name("FILE");
}

void scenario_options(CLI::App* app, CompareArgs& a) {
  const auto text = [&](const char* name, std::string& target, const char* type, const char* help) {
    return app->add_option(name, target, help)->type_name(type);
  };
  text("--package", a.package, "NAME|FILE", "Package preset or TOML file")->capture_default_str();
  text("--models", a.models, "LIST", "Models, comma-separated, or table2, all-moe")->capture_default_str();
  text("--modes", a.modes, "LIST", "prefill,decode")->capture_default_str();
  app->add_option("--trace", a.traces, "Router trace for all models of its shape, or for one")
      ->type_name("FILE|MODEL=FILE")
      ->allow_extra_args(false);
  text("--windows", a.windows, "N", "Scored windows (32)");
  text("--warmup", a.warmup, "N", "Warm-up windows that only profile (8)");
  text("--seed", a.seed, "N", "Seed of the window sampling (1)");
  text("--mix", a.mix, "WORD", "Request mix: mixed, by-domain or drift")->capture_default_str();
  text("--context", a.context, "TOKENS", "Context of a decoding sequence (1024)");
  text("--prefill-tokens", a.prefill_tokens, "N", "Tokens of a prefill window (2048)");
  text("--moe-layers", a.moe_layers, "N", "Only the first N MoE layers of each model; 0 = all (0)");
  text("--decode-tokens", a.decode_tokens, "N", "Sequences of a decode window (512)");
  text("--capacity-scope", a.capacity_scope, "WORD", "package: layers share the tiers; layer: each has them to itself")
      ->capture_default_str();
  text("--threads", a.threads, "N", "Worker threads (all cores)");
  app->add_flag("--quiet,-q", a.quiet, "No tables, no progress");
  json_option(app, a.json);
}

void compare_options(CLI::App* app, CompareArgs& a) {
  scenario_options(app, a);
  const auto text = [&](const char* name, std::string& target, const char* type, const char* help) {
    return app->add_option(name, target, help)->type_name(type);
  };
  text("--policies", a.policies, "LIST", "Policies, comma-separated, or all (static,hydra,moentwine,pimoe,hcrmap)");
  app->add_option("--set", a.settings, "Sets a policy's parameter; see sojourn describe policies")
      ->type_name("POLICY.PARAM=VALUE")
      ->allow_extra_args(false);
  text("--network", a.network, "WORD", "closed, packet or flit")->capture_default_str();
  text("--copies", a.copies, "X", "Byte budget over one copy of all routed experts (1.3)");
  text("--replicas-max", a.replicas_max, "N", "Most replicas of an expert (4)");
  text("--updates-max", a.updates_max, "N", "Residency updates a package and window (1)");
  text("--age-min", a.age_min, "N", "Windows a replica stays before it may move (4)");
  text("--link-threshold", a.link_threshold, "X", "Migration waits above this link utilisation (0.85)");
  text("--ewma-alpha", a.ewma_alpha, "X", "Smoothing of the demand estimate (0.8)");
  text("--report", a.report, "DIR", "Write DIR/index.html, one page that opens offline, and DIR/compare.json");
  text("--timeline", a.timeline, "FILE", "Write a timeline for ui.perfetto.dev (first model and mode, last policy)");
  text("--timeline-windows", a.timeline_windows, "N", "Scored windows in the timeline (1)");
}

void reproduce_options(CLI::App* app, ReproduceArgs& a) {
  const auto text = [&](const char* name, std::string& target, const char* type, const char* help) {
    return app->add_option(name, target, help)->type_name(type);
  };
  text("system", a.system, "SYSTEM", "The study: hcrmap")->required();
  app->add_flag("--quick", a.quick, "Under a minute: fewer models, windows, seeds and sweep points");
  app->add_option("--trace", a.traces, "A trace for one model, or for every model of its shape")
      ->type_name("[MODEL=]FILE")
      ->allow_extra_args(false);
  text("--models", a.models, "LIST", "Models (the paper's eight)");
  text("--policies", a.policies, "LIST", "Policies beside the paper's, or none (all that are there)");
  text("--windows", a.windows, "N", "Scored windows of every run (by part of the study)");
  text("--seeds", a.seeds, "N", "Seeds of the readings (3 at the default one, 2 elsewhere)");
  text("--seed", a.seed, "N", "The first seed of the window sampling (1)");
  text("--report", a.report, "DIR", "Write DIR/index.html, one page that opens offline, and DIR/reproduce.json");
  text("--resume", a.resume, "FILE", "File of finished runs, made if absent (DIR/state; else beside the JSON)");
  text("--threads", a.threads, "N", "Worker threads (all cores)");
  app->add_flag("--quiet,-q", a.quiet, "No tables, no progress");
  json_option(app, a.json);
}

void train_options(CLI::App* app, TrainArgs& a) {
  const auto text = [&](const char* name, std::string& target, const char* type, const char* help) {
    return app->add_option(name, target, help)->type_name(type);
  };
  text("--package", a.package, "NAME|FILE", "Package preset or TOML file")->capture_default_str();
  text("--models", a.models, "LIST", "Models, comma-separated, or table2, all-moe")->capture_default_str();
  text("--modes", a.modes, "LIST", "prefill,decode")->capture_default_str();
  text("--seed", a.seed, "N", "Seed of traces, exploration and initial weights (1)");
  text("--steps", a.steps, "N", "Windows served while learning (10000)");
  text("--episode", a.episode, "N", "Windows an episode (48)");
  text("--variants", a.variants, "N", "Synthetic traces a model (3)");
  text("--validations", a.validations, "N", "Times the greedy policy is measured on validation traces (2)");
  text("--save-every", a.save_every, "N", "Episodes between saved states (40)");
  text("--prefill-tokens", a.prefill_tokens, "N", "Tokens of a prefill window (2048)");
  text("--decode-tokens", a.decode_tokens, "N", "Sequences of a decode window (512)");
  text("--learn-from", a.learn_from, "N", "Transitions gathered before the first gradient step (1000)");
  text("--credit", a.credit, "N", "Windows an action is judged on (8)");
  text("--gamma", a.gamma, "X", "Discount of (34) (0.9)");
  text("--mu1", a.mu_1, "X", "Weight of exposed migration time in (33) (0.1)");
  text("--mu2", a.mu_2, "X", "Weight of churn in (33) (0.001)");
  text("-o,--out", a.out, "FILE", "Checkpoint to write; FILE.state holds an unfinished run")->capture_default_str();
  app->add_flag("--resume", a.resume, "Go on from FILE.state, if there is one");
  text("--report", a.report, "DIR", "Write the learning curve to DIR/index.html, one page that opens offline");
  app->add_flag("--quiet,-q", a.quiet, "No tables, no progress");
  json_option(app, a.json);
}

/// popnet's letters; one given twice counts the second time, as there.
void popnet_options(CLI::App* app, PopnetArgs& a) {
  const auto text = [&](const char* name, std::string& target, const char* type, const char* help) {
    app->add_option(name, target, help)->type_name(type)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  text("-A", a.side, "K", "Routers a side; of a graph: all of them (8)");
  text("-c", a.dimensions, "N", "Dimensions: 2, of a graph 1");
  text("-V", a.vcs, "N", "Virtual channels a port (2)");
  text("-B", a.in_buffer, "FLITS", "Input buffer of a VC (64)");
  text("-O", a.out_buffer, "FLITS", "Output buffer of a port (4)");
  text("-F", a.flit_words, "WORDS", "Words a flit; moves the random numbers only (4)");
  text("-L", a.link_length, "UM", "Link length; without effect");
  text("-T", a.limit, "CYCLES", "Ends the run (1e9)");
  text("-r", a.seed, "N", "Seed (1)");
  text("-I", a.bench, "FILE", "Packets: time source destination flits");
  text("-R", a.routing, "N", "0 XY mesh, 1 torus, 4 graph (0; 4 with -G)");
  text("-G", a.graph, "FILE.gv", "The graph");
  text("-D", a.delays, "FILE", "Delays to write (./delayInfo.txt)");
  app->add_flag("-P", a.protocol, "Packets: source_time destination_time source destination flits protocol");
  text("-m", a.report_period, "CYCLES", "Reporting period; without effect");
  text("-C", a.reconfiguration, "FILE", "Reconfigurations; without effect");
  text("-l", a.packet_loss, "WORD", "Packet loss; without effect");
  app->add_flag("--quiet,-q", a.quiet, "No summary");
  json_option(app, a.json);
}

/// Every option and command name below `app`, for suggestions.
std::vector<std::string> known_names(const CLI::App* app, bool options) {
  std::vector<std::string> names;
  if (options) {
    for (const CLI::Option* option : app->get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  } else {
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
  }
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

/// The innermost command the user reached.
const CLI::App* innermost(const CLI::App* app) {
  const auto below = app->get_subcommands();
  return below.empty() ? app : innermost(below.front());
}

std::string full_name(const CLI::App* app) {
  return app->get_parent() == nullptr ? "sojourn" : full_name(app->get_parent()) + " " + app->get_name();
}

int unexpected_word(const CLI::App* app, const std::string& word) {
  const bool option = word.size() > 1 && word.front() == '-';
  const std::vector<std::string> known = known_names(app, option);
  const std::string near = closest(option ? word.substr(0, word.find('=')) : word, known);
  std::string remedy = near.empty() ? "" : "did you mean " + near + "? ";
  if (option || known.empty())
    remedy += "see " + full_name(app) + " --help";
  else
    remedy += "known: " + joined(known);
  const std::string key = option ? word.substr(0, word.find('=')) : full_name(app);
  return report(usage(key,
                      option          ? "unknown option"
                      : known.empty() ? "unexpected argument '" + word + "'"
                                      : "unknown command '" + word + "'",
                      remedy)
                    .value());
}

int parse_error(const CLI::App& root, const CLI::ParseError& e) {
  const CLI::App* app = innermost(&root);
  const std::vector<std::string> rest = root.remaining(true);
  if (!rest.empty() && dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr) return unexpected_word(app, rest.front());
  // CLI11 writes "--name: what" or "name is required"; keep the name as the key.
  const std::string what = e.what();
  const size_t colon = what.find(": ");
  const std::string see = "see " + full_name(app) + " --help";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e) != nullptr)
    return report(
        usage(colon == std::string::npos ? "" : what.substr(0, colon), "its value is missing or given too often", see)
            .value());
  if (dynamic_cast<const CLI::RequiredError*>(&e) != nullptr) return report(usage(full_name(app), what, see).value());
  return report(usage(colon == std::string::npos ? full_name(app) : what.substr(0, colon),
                      colon == std::string::npos ? what : what.substr(colon + 2), see)
                    .value());
}

int run(int argc, char** argv) {
  CLI::App root{"Sojourn: where Mixture-of-Experts weights should live on a multi-chiplet package", "sojourn"};
  root.footer(
      "Examples:\n"
      "  sojourn compare --models mixtral-8x7b --modes prefill --report out/\n"
      "  sojourn describe policies hydra\n"
      "  sojourn check packages/hcrmap-table1.toml\n"
      "  sojourn help compare\n\n"
      "Exit codes: 0 done, 1 a check failed, 2 wrong input, 3 cannot (I/O, memory), 130 interrupted.");
  root.set_version_flag("--version", "sojourn " SOJOURN_VERSION);
  root.require_subcommand(0, 1);  // a second command name is a stray word, not another command
  std::vector<Command> commands;
  const auto add = [&](CLI::App* parent, const char* name, const char* text, const char* examples,
                       std::function<int()> run_it) {
    CLI::App* app = parent->add_subcommand(name, text);
    if (*examples != '\0') app->footer(std::string("Examples:\n") + examples);
    commands.push_back({app, std::move(run_it)});
    return app;
  };

  CompareArgs compare_args, bound_args;
  compare_options(
      add(&root, "compare", "Run policies side by side on the same package, models, traces and windows",
          "  sojourn compare\n"
          "  sojourn compare --package hcrmap-total --models dbrx,mixtral-8x7b --modes decode --windows 64\n"
          "  sojourn compare --models mixtral-8x7b --policies static,hydra --set hydra.horizon=128 --json -\n"
          "  sojourn compare --trace mixtral-8x7b=mine.npz --report out/ --timeline out/run.json\n",
          [&] { return compare(compare_args); }),
      compare_args);
  scenario_options(add(&root, "bound", "Print the proven lower bound of the routed-MoE part and what sets it",
                       "  sojourn bound --models table2\n  sojourn bound --models dbrx --modes decode --json -\n",
                       [&] { return bound(bound_args); }),
                   bound_args);

  TrainArgs train_args;
  train_options(add(&root, "train", "Train the slow loop's Q-network on synthetic traces",
                    "  sojourn train --out mine.json --report out/\n"
                    "  sojourn train --out mine.json --resume\n"
                    "  sojourn compare --set hcrmap.checkpoint=./mine.json\n",
                    [&] { return train(train_args); }),
                train_args);

  ReplayArgs replay_args;
  CLI::App* app =
      add(&root, "replay", "Run a manifest again and say whether the bytes match",
          "  sojourn compare --json run.json && sojourn replay run.json\n", [&] { return replay(replay_args); });
  app->add_option("manifest", replay_args.manifest, "JSON of sojourn compare, or its manifest")
      ->required()
      ->type_name("FILE");
  app->add_option("--threads", replay_args.threads, "Worker threads (all cores)")->type_name("N");
  app->add_flag("--quiet,-q", replay_args.quiet, "No progress, no message");
  json_option(app, replay_args.json);

  ReproduceArgs reproduce_args;
  reproduce_options(
      add(&root, "reproduce", "Run a published study again and put its numbers beside ours",
          "  sojourn reproduce hcrmap --quick\n  sojourn reproduce hcrmap --report out/ --json out/hcrmap.json\n"
          "  sojourn reproduce hcrmap --trace mixtral-8x7b=mine.npz --report out/\n",
          [&] { return reproduce(reproduce_args); }),
      reproduce_args);

  DescribeArgs describe_args;
  app = add(&root, "describe", "List what is registered, with parameters, units, defaults and bounds",
            "  sojourn describe\n  sojourn describe policies\n  sojourn describe packages hcrmap-table1 --json -\n",
            [&] { return describe(describe_args); });
  app->add_option("kind", describe_args.kind, "policies, packages, models, memories, topologies, formats or networks")
      ->type_name("KIND");
  app->add_option("name", describe_args.name, "One of them")->type_name("NAME");
  json_option(app, describe_args.json);

  CheckArgs check_args;
  app = add(&root, "check", "Validate packages, models and traces", "  sojourn check mine.toml trace.npz\n",
            [&] { return check(check_args); });
  app->add_option("files", check_args.files, "Files")->required()->type_name("FILE");
  json_option(app, check_args.json);

  CLI::App* validate = root.add_subcommand("validate", "Put the models beside recorded data of other simulators");
  ValidateArgs validate_args;
  app = add(validate, "network",
            "The flit network and the popnet model against a folder of reference data, and the other network models "
            "against flit",
            "  sojourn validate network --report out/\n"
            "  sojourn validate network --reference noc/ --json errors.json\n",
            [&] { return validate_network(validate_args); });
  app->add_option("--reference", validate_args.reference,
                  "Folder with open_loop.csv, batch.csv, traces/, NAME.bench with NAME.delay.txt ...; any of them")
      ->type_name("DIR");
  app->add_option("--report", validate_args.page, "Write DIR/index.html: curves, error histograms, model errors")
      ->type_name("DIR");
  app->add_option("--models", validate_args.models,
                  "Compare closed form, packet and flit on layers of these models (table2 without --reference or with "
                  "--report; none = no)")
      ->type_name("LIST");
  app->add_option("--package", validate_args.package, "Package of those layers")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  app->add_option("--policies", validate_args.policies, "Policies that place and route them")
      ->type_name("LIST")
      ->capture_default_str();
  app->add_option("--windows", validate_args.windows, "Windows of each (1)")->type_name("N");
  json_option(app, validate_args.json);
  app->add_flag("--quiet,-q", validate_args.quiet, "No tables, no progress");
  app = add(validate, "memory", "Run every row of a folder of DRAM reference data through the memory model",
            "  sojourn validate memory --reference memory/ --json errors.json\n",
            [&] { return validate_memory(validate_args); });
  app->add_option("--reference", validate_args.reference, "Folder with systems.csv, measurements.csv, sim_speed.csv")
      ->required()
      ->type_name("DIR");
  json_option(app, validate_args.json);
  app->add_flag("--quiet,-q", validate_args.quiet, "No tables, no progress");

  PopnetArgs popnet_args;
  popnet_options(
      add(&root, "popnet", "Run a popnet packet list, with popnet's options: LEGOSim's network simulator",
          "  sojourn popnet -A 4 -c 2 -V 3 -B 12 -O 12 -F 4 -L 1000 -T 1e9 -r 1 -I bench.txt -R 0 -D out.txt\n"
          "  sojourn popnet -A 36 -c 1 -V 3 -B 12 -O 12 -F 4 -T 1e9 -r 1 -I bench.txt -R 4 -G mesh.gv -P\n",
          [&] { return popnet_run(popnet_args); }),
      popnet_args);

  CLI::App* trace = root.add_subcommand("trace", "Import, inspect, check, export and generate router traces");
  TraceArgs import_args, info_args, trace_check_args, export_args, synth_args;
  app = add(trace, "import", "Turn recorded router output into a trace container",
            "  sojourn trace import auto logs/ -o mine.npz\n  sojourn trace import vllm_log run.log -o mine.npz\n",
            [&] { return trace_import(import_args); });
  app->add_option("format", import_args.format, "A format of sojourn describe formats, or auto")
      ->required()
      ->type_name("FORMAT");
  app->add_option("inputs", import_args.inputs, "Files, folders or globs")->required()->type_name("IN");
  app->add_option("-o,--output", import_args.output, "The container to write")->required()->type_name("OUT.npz");
  app->add_option("--set", import_args.params, "A parameter of the format")
      ->type_name("PARAM=VALUE")
      ->allow_extra_args(false);
  app->add_flag("--quiet,-q", import_args.quiet, "No messages but errors");
  json_option(app, import_args.json);
  app = add(trace, "info", "Statistics of a trace: skew, unions, correlation",
            "  sojourn trace info traces/surrogate-64x6.npz --json -\n", [&] { return trace_info(info_args); });
  app->add_option("file", info_args.inputs, "Trace container")->required()->expected(1)->type_name("FILE");
  json_option(app, info_args.json);
  app = add(trace, "check", "Validate a trace container", "  sojourn trace check mine.npz\n",
            [&] { return trace_check(trace_check_args); });
  app->add_option("files", trace_check_args.inputs, "Trace containers")->required()->type_name("FILE");
  app->add_option("--model", trace_check_args.model, "Also check that it fits this model")->type_name("NAME");
  json_option(app, trace_check_args.json);
  app = add(trace, "export", "Write a trace in another form",
            "  sojourn trace export mine.npz --format csv -o mine.csv\n", [&] { return trace_export(export_args); });
  app->add_option("file", export_args.inputs, "Trace container")->required()->expected(1)->type_name("FILE");
  app->add_option("--format", export_args.format, "Form to write")->required()->type_name("FORM");
  app->add_option("-o,--output", export_args.output, "File to write")->required()->type_name("FILE");
  json_option(app, export_args.json);
  app = add(trace, "synth", "Draw a synthetic trace",
            "  sojourn trace synth --model mixtral-8x7b --tokens 4096 -o synth.npz\n",
            [&] { return trace_synth(synth_args); });
  app->add_option("-o,--output", synth_args.output, "The container to write")->required()->type_name("OUT.npz");
  app->add_option("--model", synth_args.model, "Take layers, experts and top-k from this model")->type_name("NAME");
  app->add_option("--layers", synth_args.layers, "MoE layers")->type_name("N");
  app->add_option("--experts", synth_args.experts, "Experts a layer")->type_name("N");
  app->add_option("--top-k", synth_args.top_k, "Experts a token")->type_name("N");
  app->add_option("--tokens", synth_args.tokens, "Tokens (8192)")->type_name("N");
  app->add_option("--fit", synth_args.fit, "Fit the generator to this trace or loads file")->type_name("FILE");
  app->add_option("--seed", synth_args.seed, "Seed (1)")->type_name("N");
  app->add_option("--set", synth_args.params, "A parameter of the generator")
      ->type_name("PARAM=VALUE")
      ->allow_extra_args(false);
  json_option(app, synth_args.json);

  CLI::App* model = root.add_subcommand("model", "Make model presets");
  ModelImportArgs model_args;
  app = add(model, "import", "Turn a Hugging Face config.json into a model preset",
            "  sojourn model import config.json -o models/mine.toml\n", [&] { return model_import(model_args); });
  app->add_option("file", model_args.file, "config.json")->required()->type_name("FILE");
  app->add_option("-o,--output", model_args.output, "Preset to write; standard output unless given")
      ->type_name("FILE.toml");
  json_option(app, model_args.json);

  CLI::App* package = root.add_subcommand("package", "Package presets");
  DescribeArgs package_args{"packages", "", ""};
  app = add(package, "list", "List the packages; the same as describe packages", "  sojourn package list\n",
            [&] { return describe(package_args); });
  json_option(app, package_args.json);

  VersionArgs version_args;
  app = add(&root, "version", "Print the version", "", [&] { return version(version_args); });
  json_option(app, version_args.json);

  add(&root, "help", "Print help of a command: sojourn help COMMAND...", "  sojourn help trace import\n",
      [] { return static_cast<int>(kDone); });

  // CLI11 would take the words after "help" as commands, so they are followed here.
  if (argc >= 2 && std::string(argv[1]) == "help" && (argc == 2 || argv[2][0] != '-')) {
    const CLI::App* about = &root;
    std::string before;
    for (int i = 2; i < argc; ++i) {
      const std::vector<std::string> known = known_names(about, false);
      if (std::find(known.begin(), known.end(), argv[i]) == known.end()) return unexpected_word(about, argv[i]);
      before = full_name(about);
      about = about->get_subcommand(argv[i]);
    }
    std::fputs(about->help(before).c_str(), stdout);
    return kDone;
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return root.exit(e) == 0 ? kDone : kCannot;
  } catch (const CLI::ParseError& e) {
    return parse_error(root, e);
  }
  const CLI::App* reached = innermost(&root);
  for (const Command& command : commands)
    if (command.app == reached) return command.run();
  std::fputs(reached->help().c_str(), stderr);
  return report(
      usage(full_name(reached), "a command is missing", "choose one of " + joined(known_names(reached, false)))
          .value());
}

}  // namespace
}  // namespace sojourn::cli

int main(int argc, char** argv) {
  using namespace sojourn::cli;
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("sojourn: out of memory; choose fewer models, windows or threads\n", stderr);
    return kCannot;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sojourn: internal error: %s; please report it with the command line\n", e.what());
    return kCannot;
  }
}
