// The parts of a study: stored runs come back whole, sums and verdicts are right, the plan covers the paper.
#include "study/reproduce.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "moe/model_load.h"
#include "package/load.h"
#include "policy/dqn.h"
#include "policy/dqn_checkpoint.h"
#include "policy/policies.h"
#include "study/reproduce_record.h"
#include "trace/synth.h"

using namespace sojourn;

namespace {

const std::vector<std::string> kRoots = {SOJOURN_SOURCE_DIR};

RunResult some_run() {
  RunResult r;
  r.model = "m";
  r.mode = "decode";
  r.policy = "p \"quoted\"";
  r.latency_ps = 9'007'199'254'740'993;  // not a double
  r.window_ps = {1, 2, 3};
  r.chiplet_load = {0.1, 1.0 / 3, 5e-324};
  r.edp_js = 1.0 / 7;
  r.energy.dram = 123;
  r.bottleneck = {{"link c0->c1", 4}};
  r.stages_ps = {1, 2, 3, 4, 5, 6, 7};
  r.wall_s = 5;
  return r;
}

struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "sojourn-store-XXXXXX").string();
  TemporaryFile() {
    const int fd = mkstemp(path.data());
    REQUIRE(fd >= 0);
    close(fd);
    std::remove(path.c_str());
  }
  ~TemporaryFile() {
    for (const char* end : {"", "-wal", "-shm"}) std::remove((path + end).c_str());
  }
};

/// Two models, two arms, two seeds, made up: arm b takes `factor` of arm a in every window.
struct Made {
  SweepInputs inputs;
  std::vector<SweepRun> runs;
  SweepOutcome outcome;
  explicit Made(double factor) {
    inputs.models.resize(2);
    inputs.places = {{"here", "p"}};
    inputs.arms = {{"a", "a", {"a", {}}}, {"b", "b", {"b", {}}}};
    for (std::size_t m = 0; m < 2; ++m)
      for (std::size_t arm = 0; arm < 2; ++arm)
        for (const std::uint64_t seed : {1, 2}) {
          runs.push_back({m, 0, arm, Mode::prefill, seed, 4});
          RunResult r;
          for (int w = 0; w < 4; ++w)
            r.window_ps.push_back(static_cast<Ps>((1000 + 300 * w + 50 * static_cast<int>(seed)) *
                                                  (m == 0 ? 1e6 : 7e6) * (arm == 0 ? 1 : factor)));
          for (const Ps t : r.window_ps) r.latency_ps += t / 4;
          outcome.runs.emplace_back(std::move(r));
        }
  }
};

}  // namespace

TEST_CASE("a run is stored without loss, its run time apart") {
  const RunResult r = some_run();
  const auto back = decode_run(encode_run(r));
  REQUIRE(back);
  CHECK(encode_run(*back) == encode_run(r));
  CHECK(back->latency_ps == r.latency_ps);
  CHECK(back->chiplet_load == r.chiplet_load);
  CHECK(back->stages_ps == r.stages_ps);
  CHECK(back->bottleneck == r.bottleneck);
  CHECK(back->wall_s == 0);
  CHECK_FALSE(decode_run("{}"));
  CHECK_FALSE(decode_run("not json"));
}

TEST_CASE("the store keeps finished runs over a reopening and refuses files that are not its own") {
  TemporaryFile file;
  {
    auto store = ResultsStore::open(file.path);
    REQUIRE(store);
    REQUIRE((*store)->put("k", "what", "text", 1.5));
    auto again = ResultsStore::open(file.path);  // a second process
    REQUIRE(again);
    CHECK(*(*again)->get("k") == "text");
    REQUIRE((*store)->put("k", "what", "new", 1.5));
    CHECK(*(*again)->get("k") == "new");
  }
  auto store = ResultsStore::open(file.path);
  REQUIRE(store);
  CHECK(*(*store)->count() == 1);
  CHECK_FALSE(*(*store)->get("other"));
  std::ofstream(file.path + ".txt") << std::string(4096, 'x');
  auto wrong = ResultsStore::open(file.path + ".txt");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().exit_code == 2);
  std::remove((file.path + ".txt").c_str());
  auto nowhere = ResultsStore::open("/nonexistent/folder/state");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().exit_code == 3);
}

TEST_CASE("a ratio that is the same in every window has an interval of no width") {
  const Made made(0.75);
  const StudyView view(made.inputs, made.runs, made.outcome);
  const Estimate e = view.latency_ratio({"here", "b"}, {"here", "a"}, Mode::prefill);
  REQUIRE(e.valid);
  CHECK(e.models == 2);
  CHECK(e.seeds == 2);
  CHECK(e.windows == 4);
  CHECK(e.value == doctest::Approx(0.75));
  CHECK(e.low == doctest::Approx(0.75));
  CHECK(e.high == doctest::Approx(0.75));
  const Estimate r = reduction_percent(e);
  CHECK(r.value == doctest::Approx(25));
  CHECK(r.low <= r.high);
  CHECK_FALSE(view.latency_ratio({"here", "b"}, {"there", "a"}, Mode::prefill).valid);
  CHECK_FALSE(view.latency_ratio({"here", "b"}, {"here", "a"}, Mode::decode).valid);
}

TEST_CASE("a missing run takes its model out of a mean, and a failed study is not sound") {
  Made made(0.5);
  made.outcome.runs[0].reset();
  const StudyView view(made.inputs, made.runs, made.outcome);
  CHECK(view.models({{"here", "a"}, {"here", "b"}}, Mode::prefill) == std::vector<std::size_t>{1});
  ReproduceResult study;
  study.checks.resize(1);
  CHECK(study.sound());
  study.checks[0].must_hold = true;
  study.checks[0].holds = false;
  CHECK_FALSE(study.sound());
}

TEST_CASE("verdicts say how a reduction stands to the paper's") {
  CHECK(verdict_word(40, 38, 42, 43.6) == "agrees");  // within a tenth
  CHECK(verdict_word(20, 10, 50, 43.6) == "agrees");  // inside the interval
  CHECK(verdict_word(10, 8, 12, 43.6) == "smaller");
  CHECK(verdict_word(60, 55, 65, 43.6) == "larger");
  CHECK(verdict_word(1, -1, 3, 43.6) == "none");
  CHECK(verdict_word(30, -11, 71, 44) == "none");  // an interval that holds both says nothing
  CHECK(verdict_word(-5, -8, -2, 43.6) == "opposite");
  CHECK(verdict_word(-5, {}, {}, 43.6) == "opposite");
  CHECK(verdict_word(5, 4, 6, {}) == "holds");
}

TEST_CASE("scaled capacity keeps reservations and bandwidth, and sums up by bank set") {
  auto package = load_package("hcrmap-table1", {kRoots[0] + "/packages"});
  REQUIRE(package);
  const Package half = scaled_package(*package, 0.5, 0.25);
  for (std::size_t s = 0; s < half.bank_sets.size(); ++s) {
    const BankSet &a = package->bank_sets[s], &b = half.bank_sets[s];
    CHECK(a.bandwidth == b.bandwidth);
    if (a.tier == Tier::dram) CHECK(a.usable == b.usable);
    if (a.tier == Tier::hbm) CHECK(b.usable == a.usable / 4);
    if (a.tier == Tier::sram) CHECK(b.usable == 4 * (2 * kMiB - 544 * kKiB));
  }
  for (const BankSet& set : scaled_package(*package, 1, 0).bank_sets)
    if (set.tier == Tier::hbm) CHECK(set.usable == 0);
}

TEST_CASE("the paper's numbers load, with every comparison resolved") {
  const auto paper = load_paper_numbers("hcrmap", kRoots);
  REQUIRE(paper);
  CHECK(paper->find("fig5.prefill.vs-hydra")->value == 43.6);
  CHECK(paper->find("nothing") == nullptr);
  CHECK(paper->comparisons.size() == 8);
  const auto unknown = load_paper_numbers("hcrmp", kRoots);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().exit_code == 2);
  CHECK(unknown.error().diagnostics.text().find("hcrmap") != std::string::npos);
}

TEST_CASE("the plan has a run for every number of the paper, at both readings and scopes") {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  ReproduceOptions options;
  options.quick = true;
  options.roots = kRoots;
  options.models = "mixtral-8x7b";
  options.policies = {"no-such-policy"};
  auto study = prepare_reproduce(options, registry);
  REQUIRE(study);
  CHECK(study->readings == std::vector<std::string>{"table1-package", "table1-layer", "total-package", "total-layer"});
  CHECK(study->absent.size() == 1);
  std::set<std::pair<std::string, std::string>> there;
  for (const SweepRun& r : study->runs) there.insert({study->inputs.places[r.place].id, study->inputs.arms[r.arm].id});
  for (const std::string& place : study->readings) {
    for (const char* arm : {"static", "hydra", "moentwine", "pimoe", "hcrmap", "hcrmap:no-link", "hcrmap:no-bank",
                            "hcrmap:no-load", "hcrmap:no-migration", "hcrmap:no-fast-map", "fixed:nearest"})
      CHECK(there.count({place, arm}) == 1);
    CHECK(there.count({"no-hbm@" + place, "hcrmap:no-hbm"}) == 1);
  }
  CHECK(there.count({copies_place(2, "table1-package"), "hcrmap"}) == 1);
  CHECK(there.count({scale_place(0.25, "table1-package"), "static"}) == 1);
}

TEST_CASE("wrong inputs of a study are values, all of them at once") {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  ReproduceOptions options;
  options.roots = kRoots;
  options.models = "mixtral-8x7b,nothing";
  options.policies = {"hcrmp"};
  options.policies_given = true;
  auto study = prepare_reproduce(options, registry);
  REQUIRE_FALSE(study);
  CHECK(study.error().exit_code == 2);
  CHECK(study.error().diagnostics.items().size() == 2);
}

TEST_CASE("a sweep finds checkpoints as compare does, refuses a missing one, and reuses no run of other weights") {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  auto package = load_package("hcrmap-table1", {std::string(SOJOURN_SOURCE_DIR) + "/packages"});
  auto model = load_model("mixtral-8x7b", {std::string(SOJOURN_SOURCE_DIR) + "/models"}, {}, "--models");
  REQUIRE(package);
  REQUIRE(model);
  model->layers = 2;
  ParamSet knobs;
  for (const Param& param : synth_params()) knobs.set(param.name, param.default_value);
  knobs.set("layers", std::int64_t{2});
  knobs.set("experts", std::int64_t{8});
  knobs.set("top_k", std::int64_t{2});
  knobs.set("tokens", std::int64_t{512});
  auto data = synthesise(knobs, 5);
  REQUIRE(data);

  const TemporaryFile root;
  std::filesystem::create_directories(root.path + "/checkpoints");
  const auto write = [&](double margin, std::uint64_t seed) {
    Rng rng(seed, "sweep.test");
    Mlp net(kSlowFeatures, 8);
    net.initialise(rng);
    std::ofstream(root.path + "/checkpoints/mine.json")
        << dqn_checkpoint_text({std::make_shared<const Mlp>(net), margin, "", ""});
  };
  SweepInputs in;
  in.models = {*model};
  in.traces = {make_trace(std::move(*data))};
  in.packages = {{"hcrmap-table1", *package}};
  in.places = {{"here", "hcrmap-table1"}};
  in.arms = {{"a", "a", {"hcrmap", {{"checkpoint", "mine"}}}}};
  in.warmup = 1;
  in.decode_tokens = 16;
  in.network = NetworkKind::closed;
  const std::vector<SweepRun> runs = {{0, 0, 0, Mode::decode, 1, 1}};
  auto store = ResultsStore::open("");
  REQUIRE(store);
  SilentProgress progress;
  const auto sweep = [&] { return run_sweep(in, runs, registry, **store, 1, progress); };

  auto missing = sweep();
  REQUIRE_FALSE(missing);
  CHECK(missing.error().exit_code == 2);
  CHECK(missing.error().diagnostics.text().find("'mine' is neither a file nor in checkpoints/") != std::string::npos);
  in.search_dirs = {root.path};
  write(0, 1);
  for (const int reused : {0, 1}) {
    auto done = sweep();
    REQUIRE(done);
    CHECK(done->failures.empty());
    CHECK(done->reused == reused);
    CHECK(done->simulated == 1 - reused);
  }
  write(0, 2);
  auto other = sweep();
  REQUIRE(other);
  CHECK(other->reused == 0);
  std::filesystem::remove_all(root.path);
}
