// Arrays of expert ids: any integer dtype, -1 is padding.
#include "trace/ids_array.h"

#include <fmt/format.h>

#include "trace/array_input.h"
#include "trace/container.h"

namespace sojourn {

std::vector<std::uint64_t> ids_shape(const InputFile& f) {
  auto h = array_header(f, "");
  if (!h || !is_integer(*h) || h->shape.size() != 3) return {};
  return h->shape;
}

Result<Imported> import_ids(const std::vector<InputFile>& files, const ParamSet& params, Diagnostics& warnings,
                            const std::string& format, bool tokens_first) {
  TraceBuilder b(format);
  const char* layout = tokens_first ? "[tokens, layers, k]" : "[layers, tokens, k]";
  for (const InputFile& f : files) {
    auto a = read_array(f, params.word("array"));
    if (!a) return tl::unexpected(a.error());
    const auto& s = a->header.shape;
    if (!is_integer(a->header) || s.size() != 3)
      return fail(f.span(), "", fmt::format("is {}, must be integers {}", a->header.text(), layout),
                  "counts are read by the format npy-counts");
    const std::uint64_t layers = tokens_first ? s[1] : s[0], tokens = tokens_first ? s[0] : s[1], k = s[2];
    if (layers == 0 || tokens == 0 || k == 0 || layers > 4096 || k > 1024)
      return fail(f.span(), "", fmt::format("shape [{}] is not {}", fmt::join(s, ", "), layout),
                  "at most 4096 layers and 1024 ids a token");
    SequenceRows rows;
    std::vector<int> ids(k);
    for (std::uint64_t l = 0; l < layers; ++l)
      for (std::uint64_t t = 0; t < tokens; ++t) {
        for (std::uint64_t i = 0; i < k; ++i) {
          const std::int64_t id = npy_integer(a->header, a->data, tokens_first ? a->at({t, l, i}) : a->at({l, t, i}));
          const bool pad = id == -1 || (id == 65535 && a->header.kind == 'u' && a->header.item == 2);
          if (!pad && (id < 0 || id > 65534))
            return fail(f.span(),
                        tokens_first ? fmt::format("[{}][{}][{}]", t, l, i) : fmt::format("[{}][{}][{}]", l, t, i),
                        fmt::format("expert id {} is out of range", id), "ids run from 0 to 65534; -1 is padding");
          ids[i] = pad ? -1 : static_cast<int>(id);
        }
        std::string why;
        if (!b.add(rows, static_cast<int>(l), ids, {}, why)) return fail(f.span(), "", why, "");
      }
    if (auto ok = b.close(rows, "", f.span(), warnings); !ok) return tl::unexpected(ok.error());
  }
  return as_trace(b.finish(params, files[0].span(), warnings));
}

}  // namespace sojourn
