// NumPy counts: [layers, experts], or [steps, layers, experts] of floats. Several files are several steps.
#include <fmt/format.h>

#include "trace/array_input.h"
#include "trace/container.h"
#include "trace/formats.h"

namespace sojourn {
namespace {

Result<Imported> import_counts(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  LoadBuilder b("npy-counts");
  std::int64_t step = 0;
  for (const InputFile& f : files) {
    auto a = read_array(f, params.word("array"));
    if (!a) return tl::unexpected(a.error());
    const auto& s = a->header.shape;
    const bool number = is_integer(a->header) || a->header.kind == 'f';
    if (!number || (s.size() != 2 && s.size() != 3) || a->header.elements > (1U << 27))
      return fail(f.span(), "",
                  fmt::format("is {}, must be numbers [layers, experts] or [steps, layers, experts]", a->header.text()),
                  "");
    const bool steps = s.size() == 3;
    const std::uint64_t n = steps ? s[0] : 1, layers = s[s.size() - 2], experts = s[s.size() - 1];
    for (std::uint64_t t = 0; t < n; ++t, ++step)
      for (std::uint64_t l = 0; l < layers; ++l)
        for (std::uint64_t e = 0; e < experts; ++e) {
          std::string why;
          const double v = npy_number(a->header, a->data, steps ? a->at({t, l, e}) : a->at({l, e}));
          if (!b.add(step, static_cast<std::int64_t>(l), static_cast<std::int64_t>(e), v, why))
            return fail(f.span(), fmt::format("[{}][{}]", l, e), why, "");
        }
    if (n == 1) b.name_step(step - 1, f.name);
  }
  return as_loads(b.finish(files[0].span()), warnings);
}

int sniff(const InputFile& f) {
  if (npz_kind(f.bytes) != NpzKind::other) return 0;
  auto h = array_header(f, "");
  if (!h) return 0;
  if (h->shape.size() == 2 && (is_integer(*h) || h->kind == 'f')) return 80;
  return h->shape.size() == 3 && h->kind == 'f' ? 60 : 0;
}

}  // namespace

void register_formats_npy_counts(FormatRegistry& registry) {
  registry.add({"npy-counts",
                "NumPy counts [layers, experts] (or [steps, layers, experts]); no token order",
                {{.name = "array", .default_value = std::string(), .text = "array of a .npz; empty = the likely one"}}},
               {sniff, import_counts, true});
}

}  // namespace sojourn
