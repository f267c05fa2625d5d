// Common part of the importer fuzz targets: every format of a family reads the same bytes under the name it expects. An
// importer may refuse anything, but must not crash, leak, or take memory out of proportion; what it accepts must have
// the shape it claims.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "trace/formats.h"
#include "trace/stats.h"

namespace sojourn {

inline void require(bool ok) {
  if (!ok) std::abort();
}

inline void fuzz_formats(std::string_view bytes, std::initializer_list<std::pair<const char*, const char*>> family) {
  for (const auto& [format, path] : family) {
    const InputFile file = memory_input(bytes, path);
    for (const auto& [name, entry] : formats().entries()) (void)entry.factory.sniff(file);
    Diagnostics warnings;
    auto out = import_inputs(format, {file}, {}, warnings);
    if (!out) {
      require(out.error().diagnostics.has_errors());
      (void)out.error().diagnostics.text();
      continue;
    }
    require(out->trace.has_value() != out->loads.has_value());
    if (out->loads) {
      const LoadData& d = *out->loads;
      require(d.counts.size() == static_cast<std::size_t>(d.steps) * static_cast<std::size_t>(d.layers) *
                                     static_cast<std::size_t>(d.experts));
      if (d.counts.size() < 100000) (void)load_stats(d);
      continue;
    }
    const TraceData& t = *out->trace;
    require(t.ids.size() == static_cast<std::size_t>(t.meta.layers) && t.meta.tokens > 0);
    require(t.sequence_id.size() == static_cast<std::size_t>(t.meta.tokens) &&
            t.position.size() == t.sequence_id.size());
    for (const auto& layer : t.ids) {
      require(layer.size() == t.sequence_id.size() * static_cast<std::size_t>(t.meta.top_k));
      for (std::uint16_t id : layer) require(id < t.meta.experts || id == 65535);
    }
  }
}

}  // namespace sojourn
