// The runs of HCRMap's section 7: where, which policies with which settings, how many windows and seeds.
#include <fmt/format.h>

#include <algorithm>

#include "study/reproduce.h"

namespace sojourn {
namespace {

struct Reading {
  const char* id;
  const char* package;
  bool per_layer;
};
// Table 1's memory figures taken per chiplet group or for the whole package; the layers of a package share its tiers,
// or each has them to itself.
constexpr Reading kReadings[] = {{"table1-package", "hcrmap-table1", false},
                                 {"table1-layer", "hcrmap-table1", true},
                                 {"total-package", "hcrmap-total", false},
                                 {"total-layer", "hcrmap-total", true}};

/// Lengths of the study's parts.
struct Lengths {
  int main_windows, main_seeds, other_windows, other_seeds, sweep_windows;
};

class Plan {
 public:
  Plan(ReproduceResult& study, const PolicyRegistry& registry) : s_(study), registry_(registry) {}

  std::size_t place(Place p) {
    s_.inputs.places.push_back(std::move(p));
    return s_.inputs.places.size() - 1;
  }
  /// The arm's index, or nothing when the policy or a setting is not there.
  std::optional<std::size_t> arm(const std::string& id, const std::string& label, PolicySpec policy) {
    for (std::size_t i = 0; i < s_.inputs.arms.size(); ++i)
      if (s_.inputs.arms[i].id == id) return i;
    const auto* entry = registry_.find(policy.name);
    if (entry == nullptr || !resolve(entry->info.params, policy.settings, {}, policy.name)) return std::nullopt;
    s_.inputs.arms.push_back({id, label, std::move(policy)});
    return s_.inputs.arms.size() - 1;
  }
  void add(std::size_t place, std::optional<std::size_t> arm, int windows, int seeds, bool decode_only = false) {
    if (!arm) return;
    for (std::size_t m = 0; m < s_.inputs.models.size(); ++m)
      for (const Mode mode : {Mode::prefill, Mode::decode}) {
        if (decode_only && mode == Mode::prefill) continue;
        for (int k = 0; k < seeds; ++k)
          s_.runs.push_back({m, place, *arm, mode, s_.options.seed + static_cast<std::uint64_t>(k), windows});
      }
  }
  /// The words a parameter may take; empty when there is no such parameter.
  [[nodiscard]] std::vector<std::string> choices(const std::string& policy, const std::string& param) const {
    const auto* entry = registry_.find(policy);
    if (entry == nullptr) return {};
    for (const Param& p : entry->info.params)
      if (p.name == param) return p.choices;
    return {};
  }
  [[nodiscard]] std::string default_word(const std::string& policy, const std::string& param) const {
    const auto* entry = registry_.find(policy);
    if (entry == nullptr) return {};
    for (const Param& p : entry->info.params)
      if (p.name == param)
        if (const auto* word = std::get_if<std::string>(&p.default_value)) return *word;
    return {};
  }

 private:
  ReproduceResult& s_;
  const PolicyRegistry& registry_;
};

}  // namespace

const std::vector<std::string>& further_policies() {
  static const std::vector<std::string> names = {"sojourn",           "hybrid", "eplb", "llep", "lplb", "makespan",
                                                 "duplicate-all-hot", "random"};
  return names;
}

std::string copies_place(double copies, const std::string& reading) {
  return fmt::format("copies-{}@{}", copies, reading);
}
std::string scale_place(double scale, const std::string& reading) { return fmt::format("scale-{}@{}", scale, reading); }

std::vector<double> copies_points(bool quick) {
  return quick ? std::vector<double>{1.0, 1.3, 2.0} : std::vector<double>{1.0, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0};
}
std::vector<double> scale_points(bool quick) {
  return quick ? std::vector<double>{0.25, 1.0} : std::vector<double>{0.25, 0.5, 0.75, 1.0, 1.5};
}

std::string reading_text(const std::string& place) {
  const std::string reading = place.substr(place.find('@') == std::string::npos ? 0 : place.find('@') + 1);
  const bool total = reading.rfind("total", 0) == 0, layer = reading.ends_with("layer");
  return fmt::format("{}: Table 1's memory {}; {}", total ? "hcrmap-total" : "hcrmap-table1",
                     total ? "for the whole package" : "per chiplet group",
                     layer ? "each layer has the tiers to itself" : "the layers of a package share the tiers");
}

void plan_hcrmap(ReproduceResult& study, const PolicyRegistry& registry) {
  const bool quick = study.options.quick;
  Lengths n = quick ? Lengths{4, 1, 4, 1, 4} : Lengths{12, 3, 8, 2, 8};
  if (study.options.windows > 0) n.main_windows = n.other_windows = n.sweep_windows = study.options.windows;
  if (study.options.seeds > 0) n.main_seeds = n.other_seeds = study.options.seeds;
  Plan plan(study, registry);
  const auto hcrmap = [&](std::vector<std::pair<std::string, std::string>> settings) {
    return PolicySpec{"hcrmap", std::move(settings)};
  };

  // Figure 5 and what is compared with it.
  std::vector<std::optional<std::size_t>> main;
  for (const char* name : {"static", "hydra", "moentwine", "pimoe", "hcrmap"})
    main.push_back(plan.arm(name, name, {name, {}}));
  // Figure 6: one pressure signal removed at a time.
  std::vector<std::optional<std::size_t>> ablations;
  for (const char* signal : {"link", "bank", "load", "migration"})
    ablations.push_back(plan.arm(fmt::format("hcrmap:no-{}", signal), fmt::format("without {} awareness", signal),
                                 hcrmap({{fmt::format("{}_aware", signal), "false"}})));
  // 7.3 component checks.
  const auto no_map =
      plan.arm("hcrmap:no-fast-map", "without fast mapping (nearest copy)", hcrmap({{"fast_map", "false"}}));
  const auto no_hbm = plan.arm("hcrmap:no-hbm", "without the HBM tier", hcrmap({{"hbm_tier", "false"}}));
  // Candidates for the fixed-replica baseline: copies placed once, within the same bytes.
  std::vector<std::optional<std::size_t>> fixed = {
      plan.arm("fixed:nearest", "HCRMap's first copies, fixed; nearest copy",
               hcrmap({{"slow", "none"}, {"fast_map", "false"}})),
      plan.arm("fixed:shadows-nearest", "MoEntwine's first shadows, fixed; nearest copy",
               {"moentwine", {{"updates", "0"}, {"split", "nearest"}}}),
      plan.arm("fixed:shadows-least-loaded", "MoEntwine's first shadows, fixed; least loaded",
               {"moentwine", {{"updates", "0"}, {"split", "least-loaded"}}})};
  for (const std::string& word : plan.choices("eplb", "dispatch"))
    fixed.push_back(plan.arm("fixed:eplb-" + word, "EPLB's first copies, fixed; " + word,
                             {"eplb", {{"updates", "0"}, {"dispatch", word}}}));
  for (const char* word : {"nearest", "least-loaded"})
    fixed.push_back(plan.arm(fmt::format("fixed:duplicate-{}", word), fmt::format("hottest on every chiplet; {}", word),
                             {"duplicate-all-hot", {{"dispatch", word}}}));
  // The slow loop: every controller that hcrmap's record declares.
  std::vector<std::optional<std::size_t>> slow;
  for (const std::string& word : plan.choices("hcrmap", "slow"))
    if (word != plan.default_word("hcrmap", "slow"))
      slow.push_back(plan.arm("hcrmap:slow-" + word, "slow = " + word, hcrmap({{"slow", word}})));
  std::vector<std::optional<std::size_t>> further;
  for (const std::string& name : study.options.policies) further.push_back(plan.arm(name, name, {name, {}}));

  std::vector<std::size_t> readings;
  for (const Reading& r : kReadings) {
    const bool first = readings.empty();
    readings.push_back(plan.place({r.id, r.package, r.per_layer}));
    study.readings.emplace_back(r.id);
    const int windows = first ? n.main_windows : n.other_windows, seeds = first ? n.main_seeds : n.other_seeds;
    for (const auto& list : {main, ablations, fixed})
      for (const auto& a : list) plan.add(readings.back(), a, windows, seeds);
    plan.add(readings.back(), no_map, windows, seeds);
    if (first)
      for (const auto& a : slow) plan.add(readings.back(), a, windows, seeds);
  }
  // One seed: those that are fixed candidates too have all seeds already.
  for (const auto& a : further)
    if (std::find(fixed.begin(), fixed.end(), a) == fixed.end()) plan.add(readings[0], a, n.main_windows, 1);

  // No HBM: the pipeline of both sides is cut so that SRAM and DRAM alone can hold every copy.
  for (const Reading& r : kReadings) {
    Place p{fmt::format("no-hbm@{}", r.id), r.package, r.per_layer};
    p.cut_hbm = 0;
    const std::size_t at = plan.place(std::move(p));
    plan.add(at, plan.arm("hcrmap", "hcrmap", hcrmap({})), n.other_windows, n.other_seeds, true);
    plan.add(at, no_hbm, n.other_windows, n.other_seeds, true);
  }

  // Figure 7 and 2 (b, c), for both package readings with shared tiers.
  const auto steady = plan.arm("fixed:nearest", "", hcrmap({}));
  for (const Reading& r : kReadings) {
    if (r.per_layer || (quick && std::string(r.id) != kDefaultPlace)) continue;
    const std::vector<double> copies = copies_points(quick), scales = scale_points(quick);
    for (const double c : copies) {
      Place p{copies_place(c, r.id), r.package, r.per_layer, c};
      p.cut_copies = copies.back();
      const std::size_t at = plan.place(std::move(p));
      plan.add(at, plan.arm("hcrmap", "", hcrmap({})), n.sweep_windows, 1);
      plan.add(at, steady, n.sweep_windows, 1);
    }
    for (const double scale : scales) {
      Place p{scale_place(scale, r.id), r.package, r.per_layer, 1.3, scale, scale};
      p.cut_sram = p.cut_hbm = scales.front();
      const std::size_t at = plan.place(std::move(p));
      plan.add(at, plan.arm("hcrmap", "", hcrmap({})), n.sweep_windows, 1);
      plan.add(at, steady, n.sweep_windows, 1);
      plan.add(at, plan.arm("static", "", {"static", {}}), n.sweep_windows, 1);
    }
  }
  if (quick)
    study.reduced.push_back(fmt::format(
        "--quick: {} scored windows and {} seed everywhere (full: 12 windows, 3 seeds at the default reading, 8 and 2 "
        "elsewhere), sweeps of {} budgets and {} capacities at the default reading only (full: 7 and 5 at two)",
        n.main_windows, n.main_seeds, copies_points(true).size(), scale_points(true).size()));
}

}  // namespace sojourn
