// torch.save archives (a zip with data.pkl and data/<n>): one tensor of counts [layers, experts] or [steps, layers,
// experts], or a dict that holds one under `logical_count` (SGLang's stat recorder: unused ring-buffer rows of zeros
// are dropped). The pickle is read by our own reader; nothing in it is called, and anything but tensors and plain
// containers is refused.
#include <fmt/format.h>

#include <bit>

#include "trace/formats.h"
#include "trace/npy.h"
#include "trace/pickle.h"
#include "trace/zip.h"

namespace sojourn {
namespace {

using K = PickleValue::Kind;
struct Storage {
  const char* type;
  char kind;
  int item;
};
constexpr Storage kStorages[] = {{"FloatStorage", 'f', 4},    {"DoubleStorage", 'f', 8}, {"HalfStorage", 'f', 2},
                                 {"BFloat16Storage", 'B', 2}, {"LongStorage", 'i', 8},   {"IntStorage", 'i', 4},
                                 {"ShortStorage", 'i', 2},    {"CharStorage", 'i', 1},   {"ByteStorage", 'u', 1}};

struct Archive {
  std::vector<ZipEntry> entries;
  std::string prefix;
  [[nodiscard]] const ZipEntry* find(const std::string& name) const {
    for (const ZipEntry& e : entries)
      if (e.name == name) return &e;
    return nullptr;
  }
};

Result<Archive> open_archive(const InputFile& f) {
  auto entries = read_zip_directory(f.bytes, f.path);
  if (!entries) return tl::unexpected(entries.error());
  Archive a{std::move(*entries), ""};
  for (const ZipEntry& e : a.entries)
    if (e.name.size() > 9 && e.name.substr(e.name.size() - 9) == "/data.pkl")
      a.prefix = e.name.substr(0, e.name.size() - 8);
  if (a.prefix.empty())
    return fail(f.span(), "", "not a torch.save archive (no data.pkl)",
                "save it with torch.save of PyTorch 1.6 or later");
  return a;
}

const PickleValue* counts_in(const PickleValue* root) {
  if (root->is(K::tensor)) return root;
  const PickleValue* v = root->is(K::dict) ? root->get("logical_count") : nullptr;
  return v != nullptr && v->is(K::tensor) ? v : nullptr;
}

Result<Imported> import_tensor(const InputFile& f, const PickleValue& t, const Archive& a, Diagnostics& warnings) {
  const auto bad = [&](const std::string& why) {
    return fail(f.span(), "tensor", why,
                "save one tensor of counts [layers, experts], e.g. torch.save(counts.float(), path)");
  };
  const PickleValue& s = *t.items[0];
  const Storage* type = nullptr;
  for (const Storage& known : kStorages)
    if (s.type == known.type) type = &known;
  if (type == nullptr) return bad("storage type '" + s.type.substr(0, 60) + "' is not supported");
  if ((t.shape.size() != 2 && t.shape.size() != 3) || t.stride.size() != t.shape.size())
    return bad(
        fmt::format("shape [{}] is not [layers, experts] or [steps, layers, experts]", fmt::join(t.shape, ", ")));
  std::int64_t last = t.integer, elements = 1;
  for (std::size_t d = 0; d < t.shape.size(); ++d) {
    std::int64_t reach = 0;
    if (t.shape[d] <= 0 || t.stride[d] < 0 || __builtin_mul_overflow(elements, t.shape[d], &elements) ||
        elements > (1 << 27) || __builtin_mul_overflow(t.shape[d] - 1, t.stride[d], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return bad(fmt::format("shape [{}] with strides [{}] is impossible", fmt::join(t.shape, ", "),
                             fmt::join(t.stride, ", ")));
  }
  const ZipEntry* entry = a.find(a.prefix + "data/" + s.text);
  if (entry == nullptr) return bad("the archive has no data/" + s.text.substr(0, 60));
  auto raw = zip_member_text(f.bytes, *entry, f.path, 1 << 30);
  if (!raw) return tl::unexpected(raw.error());
  if (t.integer < 0 || last < 0 ||
      static_cast<std::uint64_t>(last) >= raw->size() / static_cast<std::uint64_t>(type->item))
    return bad(fmt::format("needs element {} of a storage of {} bytes", last, raw->size()));
  NpyHeader h;
  h.kind = type->kind == 'B' ? 'u' : type->kind;
  h.item = type->item;
  const auto number = [&](std::int64_t i) {
    if (type->kind != 'B') return npy_number(h, *raw, static_cast<std::uint64_t>(i));
    return static_cast<double>(
        std::bit_cast<float>(static_cast<std::uint32_t>(npy_integer(h, *raw, static_cast<std::uint64_t>(i))) << 16));
  };
  const bool steps = t.shape.size() == 3;
  const std::size_t dl = steps ? 1 : 0;
  LoadBuilder b("torch-counts");
  std::int64_t kept = 0, empty = 0;
  for (std::int64_t step = 0; step < (steps ? t.shape[0] : 1); ++step) {
    const std::int64_t base = t.integer + (steps ? step * t.stride[0] : 0);
    double sum = 0;
    for (std::int64_t l = 0; l < t.shape[dl]; ++l)
      for (std::int64_t e = 0; e < t.shape[dl + 1]; ++e) {
        const double v = number(base + l * t.stride[dl] + e * t.stride[dl + 1]);
        std::string why;
        sum += v;
        if (!b.add(kept, l, e, v, why)) return bad(why);
      }
    if (steps && sum == 0)
      ++empty;
    else
      ++kept;
  }
  if (empty > 0) warnings.warning(f.span(), "", fmt::format("{} steps without any token were dropped", empty));
  if (kept == 0) return bad("every count is zero");
  if (const KnownModel* known = known_model(f.path)) b.meta.model = b.meta.recorded_from = known->name;
  auto out = b.finish(f.span());
  if (out && out->steps > kept) {
    out->steps = kept;
    out->counts.resize(static_cast<std::size_t>(kept) * static_cast<std::size_t>(out->layers) *
                       static_cast<std::size_t>(out->experts));
  }
  return as_loads(std::move(out), warnings);
}

Result<Imported> import_torch(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  if (files.size() > 1) return fail(files[1].span(), "", "one file at a time", "import the files one by one");
  const InputFile& f = files[0];
  if (!looks_like_zip(f.head()))
    return fail(f.span(), "", "not a zip archive: files of torch.save before PyTorch 1.6 are not read",
                "load it and save it again with a current PyTorch");
  auto a = open_archive(f);
  if (!a) return tl::unexpected(a.error());
  auto text = zip_member_text(f.bytes, *a->find(a->prefix + "data.pkl"), f.path, 64 << 20);
  if (!text) return tl::unexpected(text.error());
  auto p = read_pickle(*text, f.path + ":data.pkl");
  if (!p) return tl::unexpected(p.error());
  const PickleValue* t = counts_in(p->root);
  if (t == nullptr)
    return fail(f.span(), "", "holds no tensor of counts (one tensor, or a dict with logical_count)",
                "save one tensor of counts [layers, experts]");
  return import_tensor(f, *t, *a, warnings);
}

int sniff(const InputFile& f) {
  if (!looks_like_zip(f.head())) return 0;
  return open_archive(f) ? 90 : 0;
}

}  // namespace

void register_formats_torch_counts(FormatRegistry& registry) {
  registry.add(
      {"torch-counts", "PyTorch .pt with one tensor of counts (or SGLang's logical_count); no token order", {}},
      {sniff, import_torch, true});
}

}  // namespace sojourn
