// The one table of colours: a policy, or a variant of one in a study, looks the same in every figure of every page.
#include <array>

#include "report/html_figures.h"

namespace sojourn {

std::map<std::string, std::string> policy_colours(const std::vector<std::string>& policies) {
  static const std::map<std::string, std::string> known = {
      {"static", "#8a8f98"},
      {"hydra", "#e69f00"},
      {"moentwine", "#009e73"},
      {"pimoe", "#cc79a7"},
      {"hcrmap", "#0072b2"},
      {"sojourn", "#d55e00"},
      {"eplb", "#b79f00"},
      {"llep", "#7a5c3a"},
      {"lplb", "#56b4e9"},
      {"makespan", "#5e3c99"},
      {"hybrid", "#4d9221"},
      {"duplicate-all-hot", "#35978f"},
      {"random", "#c2b280"},
      // Variants of a study: a removed signal has its resource's colour.
      {"hcrmap:no-link", "#4393c3"},
      {"hcrmap:no-bank", "#f4a582"},
      {"hcrmap:no-load", "#d6604d"},
      {"hcrmap:no-migration", "#8c6bb1"},
      {"hcrmap:no-fast-map", "#7fb2d9"},
      {"hcrmap:no-hbm", "#b2182b"},
      {"hcrmap:slow-none", "#9ecae1"},
      {"hcrmap:slow-amortised", "#41b6c4"},
      {"hcrmap:slow-dqn", "#253494"},
      {"fixed:nearest", "#6b6ecf"},
      {"fixed:shadows-nearest", "#a1d99b"},
      {"fixed:eplb-even", "#cdbe70"},
      {"fixed:shadows-least-loaded", "#238b45"},
      {"fixed:eplb-nearest", "#e3cf57"},
      {"fixed:eplb-least-loaded", "#8b7500"},
      {"fixed:duplicate-nearest", "#80cdc1"},
      {"fixed:duplicate-least-loaded", "#01665e"}};
  constexpr std::array<const char*, 8> spare = {"#756bb1", "#9e9ac8", "#bf812d", "#c51b7d",
                                                "#dfc27d", "#8c510a", "#2166ac", "#fa9fb5"};
  std::map<std::string, std::string> colours;
  size_t next = 0;
  for (const std::string& p : policies) {
    const auto it = known.find(p);
    colours[p] = it != known.end() ? it->second : spare[next++ % spare.size()];
  }
  return colours;
}

}  // namespace sojourn
