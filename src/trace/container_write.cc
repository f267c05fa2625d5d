// Writing containers, and traces held in memory. The bytes depend on the data alone: fixed dates, fixed member order.
#include <fmt/format.h>

#include "base/hash.h"
#include "trace/container.h"
#include "trace/npy.h"
#include "trace/zip.h"

namespace sojourn {
namespace {

class MemoryTrace final : public Trace {
 public:
  explicit MemoryTrace(TraceData data) : data_(std::move(data)) {}
  const TraceMeta& meta() const override { return data_.meta; }
  std::span<const std::uint16_t> ids(int layer) const override { return at(data_.ids, layer); }
  std::span<const std::uint16_t> weights(int layer) const override { return at(data_.weights, layer); }
  std::span<const std::int32_t> sequence_id() const override { return data_.sequence_id; }
  std::span<const std::int32_t> position() const override { return data_.position; }
  std::span<const std::uint8_t> phase() const override { return data_.phase; }

 private:
  static std::span<const std::uint16_t> at(const std::vector<std::vector<std::uint16_t>>& all, int layer) {
    if (layer < 0 || static_cast<std::size_t>(layer) >= all.size()) return {};
    return all[static_cast<std::size_t>(layer)];
  }
  TraceData data_;
};

template <class T>
std::string_view bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}

Status put(ZipWriter& zip, const std::string& name, const std::string& header,
           const std::vector<std::string_view>& parts, bool compress) {
  if (auto ok = zip.begin(name + ".npy", compress); !ok) return ok;
  if (auto ok = zip.write(header); !ok) return ok;
  for (std::string_view part : parts)
    if (auto ok = zip.write(part); !ok) return ok;
  return zip.end();
}

/// JSON as a 0-d byte string, which numpy.load gives as bytes: json.loads(npz["meta"].item()).
Status put_meta(ZipWriter& zip, const std::string& json) {
  return put(zip, "meta", npy_header(fmt::format("|S{}", json.size()), {}), {json}, true);
}

Result<std::string> done(ZipWriter& zip, AtomicFile& file, const std::string& path) {
  if (auto ok = zip.finish(); !ok) return tl::unexpected(ok.error());
  if (auto ok = file.commit(); !ok) return tl::unexpected(ok.error());
  return sha256_file(path);
}

/// Our own callers' mistakes, told rather than written to a file that cannot be read back.
Status check(const TraceData& d, const std::string& path) {
  const TraceMeta& m = d.meta;
  const auto n = static_cast<std::size_t>(m.tokens);
  const auto per_layer = n * static_cast<std::size_t>(m.top_k);
  bool good = m.layers > 0 && m.experts > 0 && m.top_k > 0 && m.top_k <= m.experts && m.tokens > 0 &&
              d.ids.size() == static_cast<std::size_t>(m.layers) &&
              (d.weights.empty() || d.weights.size() == d.ids.size()) && d.sequence_id.size() == n &&
              d.position.size() == n && (d.phase.empty() || d.phase.size() == n);
  for (const auto& layer : d.ids) good = good && layer.size() == per_layer;
  for (const auto& layer : d.weights) good = good && layer.size() == per_layer;
  if (!good)
    return fail({path}, "", "the trace's arrays and meta do not agree in shape",
                "this is a bug in the importer or generator");
  return {};
}

}  // namespace

std::unique_ptr<Trace> make_trace(TraceData data) { return std::make_unique<MemoryTrace>(std::move(data)); }

Result<std::string> write_trace(const TraceData& data, const std::string& path) {
  return write_trace_as(data, path, Compression::deflate);
}

Result<std::string> write_trace_as(const TraceData& data, const std::string& path, Compression compression) {
  if (auto ok = check(data, path); !ok) return tl::unexpected(ok.error());
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  ZipWriter zip(*file);
  const bool small = compression == Compression::deflate;
  const TraceMeta& m = data.meta;
  const auto tokens = static_cast<std::uint64_t>(m.tokens);
  const std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(m.layers), tokens,
                                         static_cast<std::uint64_t>(m.top_k)};
  std::vector<std::string_view> parts;
  for (const auto& layer : data.ids) parts.push_back(bytes_of(layer));
  if (auto ok = put(zip, "topk_ids", npy_header("<u2", shape), parts, small); !ok) return tl::unexpected(ok.error());
  if (!data.weights.empty()) {
    parts.clear();
    for (const auto& layer : data.weights) parts.push_back(bytes_of(layer));
    if (auto ok = put(zip, "weights", npy_header("<f2", shape), parts, small); !ok) return tl::unexpected(ok.error());
  }
  if (auto ok = put(zip, "sequence_id", npy_header("<i4", {tokens}), {bytes_of(data.sequence_id)}, small); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = put(zip, "position", npy_header("<i4", {tokens}), {bytes_of(data.position)}, small); !ok)
    return tl::unexpected(ok.error());
  if (!data.phase.empty())
    if (auto ok = put(zip, "phase", npy_header("|u1", {tokens}), {bytes_of(data.phase)}, small); !ok)
      return tl::unexpected(ok.error());
  if (auto ok = put_meta(zip, meta_to_json(m, "sojourn.trace/1")); !ok) return tl::unexpected(ok.error());
  return done(zip, *file, path);
}

Result<std::string> write_loads(const LoadData& data, const std::string& path) {
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  ZipWriter zip(*file);
  const std::vector<std::uint64_t> shape{static_cast<std::uint64_t>(data.steps),
                                         static_cast<std::uint64_t>(data.layers),
                                         static_cast<std::uint64_t>(data.experts)};
  if (auto ok = put(zip, "loads", npy_header("<f8", shape), {bytes_of(data.counts)}, true); !ok)
    return tl::unexpected(ok.error());
  TraceMeta meta = data.meta;
  if (!data.traffic) meta.training = "not traffic";
  if (auto ok = put_meta(zip, meta_to_json(meta, "sojourn.loads/1")); !ok) return tl::unexpected(ok.error());
  return done(zip, *file, path);
}

}  // namespace sojourn
