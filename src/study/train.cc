// The training loop; see train.h.
#include "study/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "moe/model_load.h"
#include "package/load.h"
#include "policy/dqn_checkpoint.h"
#include "study/train_state.h"
#include "trace/synth.h"

namespace sojourn {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRewardScale = 16;  // Q is of order 1 when a gain is a few per cent of a layer
constexpr int kActionsMax = 32;      // of a next state kept in the replay
constexpr int kSampledLayers = 6;    // evaluated a window for pressures
constexpr int kTraceLayers = 8, kTraceTokens = 28000, kWarmup = 8;
const SourceSpan kCommandLine{"<command line>", 0, 0};

SlowSettings slow_settings() {
  SlowSettings s;
  return s;
}

Json options_json(const TrainOptions& o) {
  Json j;
  j["package"] = o.package;
  j["models"] = o.models;
  for (Mode m : o.modes) j["modes"].push_back(mode_name(m));
  j["seed"] = o.seed;
  j["steps"] = o.steps;
  j["episode"] = o.episode;
  j["variants"] = o.variants;
  j["validations"] = o.validations;
  j["prefill_tokens"] = o.prefill_tokens;
  j["decode_tokens"] = o.decode_tokens;
  j["branches"] = o.branches;
  j["average_share"] = o.average_share;
  j["hidden"] = o.hidden;
  j["batch"] = o.batch;
  j["replay"] = o.replay;
  j["sync"] = o.sync;
  j["learn_from"] = o.learn_from;
  j["gamma"] = o.gamma;
  j["rate"] = o.rate;
  j["rate_end"] = o.rate_end;
  j["clip"] = o.clip;
  j["epsilon"] = {o.epsilon_start, o.epsilon_end, o.epsilon_share};
  j["mu_1"] = o.reward.mu_1;
  j["mu_2"] = o.reward.mu_2;
  j["credit_windows"] = o.reward.credit;
  return j;
}

/// Knobs of a synthetic trace: wide, so that the network is not fitted to one kind of traffic. Ours.
ParamSet trace_knobs(const ModelShape& model, Rng& rng) {
  ParamSet p;
  for (const Param& param : synth_params()) p.set(param.name, param.default_value);
  const auto between = [&](double lo, double hi) { return lo + (hi - lo) * rng.uniform(); };
  p.set("layers", std::int64_t{kTraceLayers});
  p.set("experts", static_cast<std::int64_t>(model.experts));
  p.set("top_k", static_cast<std::int64_t>(model.top_k));
  p.set("tokens", std::int64_t{kTraceTokens});
  p.set("domains", static_cast<std::int64_t>(1 + rng.below(6)));
  p.set("zipf", between(0.1, 1.1));
  p.set("plateau", between(0.5, 6.0));
  p.set("domain_mix", between(0.1, 0.9));
  p.set("coactivation", between(0.0, 0.4));
  p.set("drift", between(0.1, 0.8));
  p.set("persistence", between(0.05, 0.5));
  p.set("length_mean", between(80, 500));
  return p;
}

struct WorldSpec {
  std::size_t model = 0;
  Mode mode = Mode::prefill;
  int variant = 0;
};

/// Worlds are built when first needed and kept; what they are depends on the seed and their index alone.
class Worlds {
 public:
  Worlds(const TrainOptions& o, const Package& package, const std::vector<ModelShape>& models,
         const PolicyRegistry& registry, const char* stream, int variants)
      : o_(o), package_(package), models_(models), registry_(registry), stream_(stream) {
    for (std::size_t m = 0; m < models.size(); ++m)
      for (Mode mode : o.modes)
        for (int v = 0; v < variants; ++v) specs_.push_back({m, mode, v});
    worlds_.resize(specs_.size());
  }
  [[nodiscard]] std::size_t size() const { return specs_.size(); }
  [[nodiscard]] Result<TrainWorld*> get(std::size_t i) {
    if (worlds_[i]) return worlds_[i].get();
    const WorldSpec& spec = specs_[i];
    const ModelShape& model = models_[spec.model];
    const std::uint64_t index = spec.model * 64 + static_cast<std::uint64_t>(spec.variant);
    Rng rng(o_.seed, stream_, index);
    const ParamSet knobs = trace_knobs(model, rng);
    auto data = synthesise(knobs, rng.next() >> 1);
    if (!data) return tl::unexpected<Failure>(data.error());
    WindowOptions w;
    w.mode = spec.mode;
    w.size = w.mode == Mode::prefill ? o_.prefill_tokens : o_.decode_tokens;
    w.warmup = kWarmup;
    w.scored = o_.episode + o_.reward.credit + 2;
    w.seed = rng.next() >> 1;
    auto scenario = make_scenario(model, package_, make_trace(std::move(*data)), w, Scenario{});
    if (!scenario) return tl::unexpected<Failure>(scenario.error());
    // One package of the pipeline, any of them: they differ in layers and in what else they hold.
    const std::size_t stage = rng.below((*scenario)->stages.size());
    worlds_[i] = std::make_unique<TrainWorld>(std::move(*scenario), stage, registry_, kSampledLayers);
    return worlds_[i].get();
  }

 private:
  const TrainOptions& o_;
  const Package& package_;
  const std::vector<ModelShape>& models_;
  const PolicyRegistry& registry_;
  const char* stream_;
  std::vector<WorldSpec> specs_;
  std::vector<std::unique_ptr<TrainWorld>> worlds_;
};

/// No-op's features, then the candidates'.
void flatten(const SlowState& state, const std::vector<SlowCandidate>& candidates, std::vector<float>& out) {
  out.assign(state.no_op.begin(), state.no_op.end());
  for (const SlowCandidate& c : candidates) out.insert(out.end(), c.features.begin(), c.features.end());
}

class Trainer {
 public:
  Trainer(const TrainOptions& o, const PolicyRegistry& registry, ProgressSink& progress)
      : o_(o), registry_(registry), progress_(progress) {}

  Result<TrainResult> run();

 private:
  [[nodiscard]] double epsilon() const {
    const double done = static_cast<double>(s_.steps) / std::max(1.0, o_.epsilon_share * o_.steps);
    return o_.epsilon_start + (o_.epsilon_end - o_.epsilon_start) * std::min(1.0, done);
  }
  Result<bool> episode(Worlds& worlds);
  void learn(Rng& rng);
  void close_point();
  /// Mean over the worlds of ln(time with this controller / time without updates).
  Result<double> validate(Worlds& worlds, const std::function<std::unique_ptr<SlowController>()>& controller);
  Result<bool> validate_dqn(Worlds& worlds);
  Result<bool> save();
  /// The mean of the last steps' networks, which tells small gains apart better than the last one.
  [[nodiscard]] Mlp final_network() const {
    Mlp net = s_.dqn.online();
    if (s_.averaged > 0) net.theta() = s_.average;
    return net;
  }

  const TrainOptions& o_;
  const PolicyRegistry& registry_;
  ProgressSink& progress_;
  TrainState s_;
  std::string options_hash_;
  std::vector<double> still_;  ///< [validation world] time without updates
  std::vector<int> sample_;
};

void Trainer::learn(Rng& rng) {
  if (s_.replay.size() < std::min(o_.learn_from, o_.replay)) return;
  sample_.clear();
  for (int i = 0; i < o_.batch; ++i)
    sample_.push_back(static_cast<int>(rng.below(static_cast<std::uint64_t>(s_.replay.size()))));
  DqnStep step;
  const double done = std::min(1.0, static_cast<double>(s_.steps) / o_.steps);
  step.gamma = static_cast<float>(o_.gamma);
  step.rate = static_cast<float>(o_.rate * std::pow(o_.rate_end / o_.rate, done));
  step.clip = static_cast<float>(o_.clip);
  s_.open.loss += static_cast<double>(s_.dqn.learn(s_.replay, sample_, step));
  ++s_.open_learned;
  if (++s_.learned % o_.sync == 0) s_.dqn.sync();
  if (done < 1 - o_.average_share) return;
  const Eigen::VectorXf& theta = s_.dqn.online().theta();
  if (s_.averaged++ == 0)
    s_.average = theta;
  else
    s_.average += (theta - s_.average) / static_cast<float>(s_.averaged);
}

Result<bool> Trainer::episode(Worlds& worlds) {
  Rng rng(o_.seed, "train.episode", static_cast<std::uint64_t>(s_.episode));
  auto found = worlds.get(rng.below(worlds.size()));
  if (!found) return tl::unexpected<Failure>(found.error());
  TrainWorld& world = **found;
  // Most episodes start from the initial layout, the others from one stirred by up to an exchange for every 8th expert.
  const int most = std::max(1, world.layers() * world.view().experts / 8);
  const int stir = rng.uniform() < 0.7 ? 0 : 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(most)));
  if (!world.start(stir, rng)) return fail(kCommandLine, "--models", "a layout does not fit", "choose another package");
  DqnScan scan(slow_settings());
  std::vector<SlowCandidate> candidates;
  std::vector<float> now, next;
  std::vector<const SlowCandidate*> actions;
  std::vector<TrainWorld::Branch> branches;
  SlowState state;
  const PolicyView view = world.view();
  scan.propose(world.cost(), view, state, candidates);
  flatten(state, candidates, now);
  constexpr std::size_t f = kSlowFeatures;
  for (int n = 0; n < o_.episode && world.left(o_.reward.credit) > 0; ++n) {
    const double eps = epsilon();
    const std::size_t count = candidates.size() + 1;
    std::size_t pick = 0;
    if (rng.uniform() < eps) {
      pick = rng.below(count);
    } else {
      float best = 0;
      for (std::size_t a = 0; a < count; ++a) {
        const float q = s_.dqn.online().score(std::span(now).subspan(a * f, f));
        if (a == 0 || q > best) best = q, pick = a;
      }
    }
    // The one taken, no-op, and others without repetition.
    std::vector<std::size_t> judged{pick};
    if (pick != 0) judged.push_back(0);
    std::vector<std::size_t> rest;
    for (std::size_t a = 1; a < count; ++a)
      if (a != pick) rest.push_back(a);
    rng.shuffle(rest);
    for (std::size_t k = 0; k < rest.size() && k < static_cast<std::size_t>(o_.branches); ++k)
      judged.push_back(rest[k]);
    actions.clear();
    for (std::size_t a : judged) actions.push_back(a == 0 ? nullptr : &candidates[a - 1]);
    world.judge(actions, o_.reward, branches);
    world.step(actions.front(), o_.reward, branches);
    const double reward = branches.front().reward;
    for (std::size_t k = judged.size(); k-- > 0;) {
      SlowState after;
      DqnScan its_scan(scan);
      std::vector<SlowCandidate> its_candidates;
      const PolicyView its_view = k == 0 ? world.view() : world.view_of(*branches[k].after);
      (k == 0 ? scan : its_scan).propose(world.cost(), its_view, after, its_candidates);
      flatten(after, its_candidates, next);
      s_.replay.push(std::span(now).subspan(judged[k] * f, f), static_cast<float>(kRewardScale * branches[k].reward),
                     next);
      if (k == 0) candidates = std::move(its_candidates);
    }
    now.swap(next);  // of the branch taken, which comes last
    s_.open.reward += reward;
    s_.open.epsilon += eps;
    s_.open.legal += static_cast<double>(count);
    s_.open.acted += pick != 0;
    ++s_.open_steps;
    ++s_.steps;
    learn(rng);
  }
  ++s_.episode;
  return true;
}

void Trainer::close_point() {
  const double n = std::max(1, s_.open_steps);
  TrainPoint p = s_.open;
  p.episode = s_.episode;
  p.steps = s_.steps;
  p.reward /= n;
  p.epsilon /= n;
  p.legal /= n;
  p.acted /= n;
  p.loss /= std::max(1, s_.open_learned);
  s_.curve.push_back(p);
  s_.open = {};
  s_.open_steps = s_.open_learned = 0;
}

Result<double> Trainer::validate(Worlds& worlds, const std::function<std::unique_ptr<SlowController>()>& controller) {
  double sum = 0;
  const bool first = still_.empty();
  RewardTerms none;
  none.credit = 0;
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    auto found = worlds.get(i);
    if (!found) return tl::unexpected<Failure>(found.error());
    TrainWorld& world = **found;
    const auto serve = [&](SlowController* c) {
      Rng unused(0, "none");
      double time = 0;
      if (!world.start(0, unused)) return 0.0;
      std::vector<SlowCandidate> candidates;
      for (int w = 0; world.left(0) > 0; ++w) {
        candidates.clear();
        const PolicyView view = world.view();
        const SlowCandidate* best = nullptr;
        if (c != nullptr) {
          SlowState state;
          c->propose(slow_settings(), world.cost(), view, state, candidates);
          c->score(state, candidates);
          for (const SlowCandidate& x : candidates)
            if (x.score > 0 && (best == nullptr || x.score > best->score)) best = &x;
        }
        if (w % 4 == 0) time += world.evaluate(view.window);
        (void)world.step(best, none);
      }
      return time;
    };
    if (first) still_.push_back(serve(nullptr));
    const auto c = controller();
    sum += std::log(serve(c.get()) / still_[i]);
  }
  return std::exp(sum / static_cast<double>(worlds.size())) - 1;
}

Result<bool> Trainer::validate_dqn(Worlds& worlds) {
  const auto frozen = std::make_shared<const Mlp>(final_network());
  auto dqn = validate(worlds, [&] { return make_dqn(slow_settings(), frozen, 0); });
  if (!dqn) return tl::unexpected<Failure>(dqn.error());
  s_.validation.push_back({s_.steps, *dqn});
  return true;
}

Result<bool> Trainer::save() {
  if (o_.state_path.empty()) return true;
  return write_durably(o_.state_path, train_state_bytes(s_, options_hash_));
}

Result<TrainResult> Trainer::run() {
  const auto below = [&](const char* folder) {
    std::vector<std::string> out;
    for (const std::string& root : o_.search_dirs) out.push_back(root + "/" + folder);
    return out;
  };
  auto package = load_package(o_.package, below("packages"));
  if (!package) return tl::unexpected<Failure>(package.error());
  auto models = load_model_list(o_.models, below("models"), kCommandLine, "--models");
  if (!models) return tl::unexpected<Failure>(models.error());
  for (const ModelShape& m : *models) {
    if (m.moe_layers() == 0)
      return fail(kCommandLine, "--models", fmt::format("{} has no routed experts", m.name),
                  "choose Mixture-of-Experts models");
    if (auto stages = partition(m, *package, Scenario{}.copies, false); !stages)
      return tl::unexpected<Failure>(stages.error());
  }
  Json manifest;
  manifest["schema"] = "sojourn.manifest/1";
  manifest["version"] = SOJOURN_VERSION;
  manifest["command"] = "train";
  manifest["options"] = options_json(o_);
  manifest["package"] = {{"name", package->name}, {"sha256", package->source_sha256}};
  for (const ModelShape& m : *models) manifest["models"].push_back({{"name", m.name}, {"sha256", m.source_sha256}});
  manifest["split"] = {
      {"training", "synthetic traces, streams train.trace of the seed"},
      {"validation", "synthetic traces, streams validate.trace of the seed; measured, never learned from"},
      {"held_out", "every trace in a file: no file is opened"}};
  options_hash_ = sha256_hex(manifest.dump());

  Rng start(o_.seed, "train.network");
  s_.dqn = DoubleDqn(kSlowFeatures, o_.hidden, start);
  s_.replay = Replay(o_.replay, kSlowFeatures, kActionsMax);
  std::error_code ignored;
  if (o_.resume && std::filesystem::exists(o_.state_path, ignored))
    if (auto read = read_train_state(o_.state_path, options_hash_, s_); !read)
      return tl::unexpected<Failure>(read.error());

  Worlds training(o_, *package, *models, registry_, "train.trace", o_.variants);
  Worlds validation(o_, *package, *models, registry_, "validate.trace", 1);
  TrainResult result;
  while (s_.steps < o_.steps) {
    if (progress_.interrupted()) {
      result.interrupted = true;
      break;
    }
    const int before = s_.steps;
    if (auto ok = episode(training); !ok) return tl::unexpected<Failure>(ok.error());
    const double n = std::max(1, s_.open_steps);
    progress_.step(std::min(s_.steps, o_.steps), o_.steps,
                   fmt::format("reward {:+.4f} loss {:.3f} eps {:.2f} legal {:.0f}", s_.open.reward / n,
                               s_.open.loss / std::max(1, s_.open_learned), epsilon(), s_.open.legal / n));
    if (s_.episode % 10 == 0 || s_.steps >= o_.steps) close_point();
    if (o_.validations > 0 && (static_cast<std::int64_t>(before) * o_.validations / o_.steps !=
                               static_cast<std::int64_t>(std::min(s_.steps, o_.steps)) * o_.validations / o_.steps))
      if (auto ok = validate_dqn(validation); !ok) return tl::unexpected<Failure>(ok.error());
    if (s_.episode % o_.save_every == 0)
      if (auto ok = save(); !ok) return tl::unexpected<Failure>(ok.error());
  }
  if (result.interrupted) {
    if (auto ok = save(); !ok) return tl::unexpected<Failure>(ok.error());
  } else if (o_.validations > 0) {
    auto rule = validate(validation, [] { return make_amortised(slow_settings()); });
    if (!rule) return tl::unexpected<Failure>(rule.error());
    result.amortised = *rule;
    // The margin is a number chosen on the validation worlds, like the hyper-parameters; least time, then least margin.
    const auto frozen = std::make_shared<const Mlp>(final_network());
    for (const double margin : {0.0, 0.04, 0.08, 0.12, 0.16, 0.24}) {
      auto over = validate(validation, [&] { return make_dqn(slow_settings(), frozen, margin); });
      if (!over) return tl::unexpected<Failure>(over.error());
      result.margins.push_back({margin, *over});
    }
  }
  DqnCheckpoint checkpoint;
  checkpoint.network = std::make_shared<const Mlp>(final_network());
  if (!result.margins.empty())
    checkpoint.margin =
        std::min_element(result.margins.begin(), result.margins.end(), [](const MarginPoint& a, const MarginPoint& b) {
          return a.over < b.over;
        })->margin;
  checkpoint.training = manifest.dump();
  result.checkpoint = dqn_checkpoint_text(checkpoint);
  auto parsed = parse_dqn_checkpoint(result.checkpoint, "<trained>");
  if (!parsed) return tl::unexpected<Failure>(parsed.error());
  result.weights_sha256 = parsed->weights_sha256;
  result.manifest_json = manifest.dump(1);
  result.curve = s_.curve;
  result.validation = s_.validation;
  return result;
}

}  // namespace

Result<TrainResult> train_dqn(const TrainOptions& options, const PolicyRegistry& registry, ProgressSink& progress) {
  return Trainer(options, registry, progress).run();
}

}  // namespace sojourn
