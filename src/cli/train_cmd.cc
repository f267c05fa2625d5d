// train: options to TrainOptions, the checkpoint, its learning curve as table, JSON and page.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/values.h"
#include "policy/policies.h"
#include "report/train_html.h"
#include "study/train.h"

namespace sojourn::cli {

int train(const TrainArgs& args) {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  Values values;
  TrainOptions o;
  o.package = args.package;
  o.models = args.models;
  o.modes.clear();
  for (const std::string& mode : values.list("--modes", args.modes))
    o.modes.push_back(values.choice("--modes", mode, {"prefill", "decode"}) == 0 ? Mode::prefill : Mode::decode);
  const auto whole = [&](const char* key, const std::string& text, int fallback, std::int64_t min, std::int64_t max) {
    return static_cast<int>(values.whole(key, text, fallback, min, max));
  };
  o.seed = static_cast<std::uint64_t>(values.whole("--seed", args.seed, 1, 0, INT64_MAX));
  o.steps = whole("--steps", args.steps, o.steps, 1, 10'000'000);
  o.episode = whole("--episode", args.episode, o.episode, 1, 10'000);
  o.variants = whole("--variants", args.variants, o.variants, 1, 64);
  o.validations = whole("--validations", args.validations, o.validations, 0, 1000);
  o.save_every = whole("--save-every", args.save_every, o.save_every, 1, 1'000'000);
  o.prefill_tokens = whole("--prefill-tokens", args.prefill_tokens, o.prefill_tokens, 1, 1 << 20);
  o.decode_tokens = whole("--decode-tokens", args.decode_tokens, o.decode_tokens, 1, 1 << 20);
  o.learn_from = whole("--learn-from", args.learn_from, o.learn_from, 1, 1'000'000);
  o.reward.credit = whole("--credit", args.credit, o.reward.credit, 1, 1000);
  o.gamma = values.number("--gamma", args.gamma, o.gamma, 0, 0.999);
  o.reward.mu_1 = values.number("--mu1", args.mu_1, o.reward.mu_1, 0, 1e3);
  o.reward.mu_2 = values.number("--mu2", args.mu_2, o.reward.mu_2, 0, 1e3);
  if (args.out == "-") values.error("--out", "a checkpoint cannot go to standard output", "give a file");
  if (!values.ok()) return report(values.failure());

  std::optional<HtmlAssets> assets;
  const std::string page_path = args.report.empty() ? "" : args.report + "/index.html";
  if (!args.report.empty()) {
    auto loaded = load_html_assets(homes());
    if (!loaded) return report(loaded.error());
    assets = std::move(*loaded);
  }
  for (const auto& [path, option] : {std::pair(args.out, "--out"), {args.json, "--json"}, {page_path, "--report"}})
    if (auto fine = check_writable(path, option); !fine) return report(fine.error());
  if (auto fine = check_distinct({{args.out, "--out"}, {args.json, "--json"}, {page_path, "--report"}}, {}); !fine)
    return report(fine.error());

  o.search_dirs = homes();
  for (const char* kind : {"packages", "models"})
    for (std::string& dir : search_dirs(kind)) o.search_dirs.push_back(std::move(dir));
  o.state_path = args.out + ".state";
  o.resume = args.resume;
  std::error_code ignored;
  if (!args.resume && std::filesystem::exists(o.state_path, ignored))
    return report(usage("--out", fmt::format("{} is the state of an unfinished run", o.state_path),
                        "go on with --resume, or delete it")
                      .value());
  catch_interrupt();
  TerminalProgress progress(args.quiet);
  auto result = train_dqn(o, registry, progress);
  progress.clear();
  if (!result) return report(result.error());
  const TextOutput text(args.json, args.quiet);
  if (result->interrupted) {
    text.write(fmt::format("interrupted; the state is kept in {}: go on with --resume\n", o.state_path));
    return kInterrupted;
  }
  if (auto written = write_durably(args.out, result->checkpoint); !written) return report(written.error());
  std::filesystem::remove(o.state_path, ignored);
  text.write(train_table(*result, text.style()));
  if (auto written = write_output(args.json, "--json", train_json(*result)); !written) return report(written.error());
  if (assets)
    if (auto written = write_output(page_path, "--report", train_html(*result, *assets)); !written)
      return report(written.error());
  text.write(fmt::format("checkpoint: {} (weights {})\n", args.out, result->weights_sha256.substr(0, 16)));
  if (assets) text.write(fmt::format("report: {}\n", page_path));
  return kDone;
}

}  // namespace sojourn::cli
