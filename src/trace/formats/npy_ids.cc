// Plain NumPy expert ids [layers, tokens, k] (.npy, or an array of a .npz), one sequence a file; and this program's own
// containers, which are copied.
#include "trace/container.h"
#include "trace/ids_array.h"

namespace sojourn {
namespace {

Result<Imported> copy_container(const InputFile& f, const ParamSet& params) {
  auto opened = open_trace_bytes(f.bytes, f.path);
  if (!opened) return tl::unexpected(opened.error());
  const Trace& t = **opened;
  TraceData d;
  d.meta = t.meta();
  if (d.meta.format.empty()) d.meta.format = "npy";
  if (!params.word("model").empty()) d.meta.recorded_from = params.word("model");
  const auto vec = [](auto span) { return std::vector(span.begin(), span.end()); };
  for (int l = 0; l < d.meta.layers; ++l) {
    d.ids.push_back(vec(t.ids(l)));
    if (!t.weights(l).empty()) d.weights.push_back(vec(t.weights(l)));
  }
  d.sequence_id = vec(t.sequence_id());
  d.position = vec(t.position());
  d.phase = vec(t.phase());
  return as_trace(std::move(d));
}

Result<Imported> import_npy(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings) {
  if (npz_kind(files[0].bytes) == NpzKind::trace) {
    if (files.size() > 1)
      return fail(files[1].span(), "", "only one container can be copied at a time", "name one file");
    return copy_container(files[0], params);
  }
  return import_ids(files, params, warnings, "npy", false);
}

int sniff(const InputFile& f) {
  if (npz_kind(f.bytes) == NpzKind::trace) return 99;
  const auto s = ids_shape(f);
  return s.empty() ? 0 : s[0] <= s[1] ? 80 : 30;
}

}  // namespace

void register_formats_npy_ids(FormatRegistry& registry) {
  auto params = common_params();
  params.push_back(
      {.name = "array", .default_value = std::string(), .text = "array of a .npz; empty = the likely one"});
  registry.add({"npy", "NumPy expert ids [layers, tokens, k], .npy or .npz, one sequence a file", params},
               {sniff, import_npy});
}

}  // namespace sojourn
