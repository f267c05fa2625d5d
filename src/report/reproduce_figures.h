// The figures of a reproduced study; internal to src/report.
#pragma once
#include <string>
#include <vector>

#include "report/html_figures.h"
#include "study/reproduce.h"

namespace sojourn {

/// Reductions over the rivals at the four readings, the paper's as ticks.
[[nodiscard]] Figure readings_figure(const ReproduceResult& study);
/// Figure 2 (a): traffic and latency of the one-copy placements over static.
[[nodiscard]] Figure traffic_figure(const ReproduceResult& study, const StudyView& view);
/// Figures 2 (b), 7 (a): latency over the budget. `arms`: ids.
[[nodiscard]] Figure copies_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                                   const std::string& title, const std::vector<std::string>& arms);
/// Figures 2 (c), 7 (b): latency over the capacity, relative to static at full capacity.
[[nodiscard]] Figure capacity_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                                     const std::string& title, const std::vector<std::string>& arms);
/// Figure 5: stacked stages relative to static's latency.
[[nodiscard]] Figure stacked_figure(const ReproduceResult& study, const StudyView& view, Mode mode,
                                    const std::vector<std::string>& arms);
/// Figure 6 and relatives: latency over that of `base`, a point with its interval for each model and for all.
[[nodiscard]] Figure ratio_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                                  const std::string& title, const std::string& caption, const std::string& base,
                                  const std::vector<std::string>& arms);
/// Geometric means over models relative to static, a bar an arm.
[[nodiscard]] Figure ranking_figure(const ReproduceResult& study, const StudyView& view, const std::string& id,
                                    const std::string& title, const std::string& caption,
                                    const std::vector<std::string>& arms);
/// Figure 8: compute load on the chiplet grid, one colour scale.
[[nodiscard]] Figure heat_figure(const ReproduceResult& study, const StudyView& view,
                                 const std::vector<std::string>& arms);

}  // namespace sojourn
