// Reading the container. Stored members are used in place when they are aligned; everything else is copied in a stream
// to an unlinked temporary file and mapped. Headers are checked against each other before anything is inflated.
#include "trace/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>

#include "base/hash.h"
#include "trace/npy.h"
#include "trace/zip.h"

namespace sojourn {
namespace {

struct Array {
  NpyHeader header;
  std::string_view data;  ///< elements, aligned to 8
};

struct Storage {
  MappedFile file;
  std::vector<MappedFile> temporary;
};

class NpzTrace final : public Trace {
 public:
  TraceMeta info;
  std::unique_ptr<Storage> storage;
  std::span<const std::uint16_t> all_ids, all_weights;
  std::span<const std::int32_t> sequence, positions;
  std::span<const std::uint8_t> phases;

  const TraceMeta& meta() const override { return info; }
  std::span<const std::uint16_t> ids(int layer) const override { return slice(all_ids, layer); }
  std::span<const std::uint16_t> weights(int layer) const override { return slice(all_weights, layer); }
  std::span<const std::int32_t> sequence_id() const override { return sequence; }
  std::span<const std::int32_t> position() const override { return positions; }
  std::span<const std::uint8_t> phase() const override { return phases; }

 private:
  std::span<const std::uint16_t> slice(std::span<const std::uint16_t> all, int layer) const {
    if (all.empty() || layer < 0 || layer >= info.layers) return {};
    const std::size_t n = static_cast<std::size_t>(info.tokens) * static_cast<std::size_t>(info.top_k);
    return all.subspan(static_cast<std::size_t>(layer) * n, n);
  }
};

template <class T>
std::span<const T> view(const Array& a) {
  return {reinterpret_cast<const T*>(a.data.data()), static_cast<std::size_t>(a.header.elements)};
}

class Loader {
 public:
  Loader(std::string_view file, std::string path, Storage& storage)
      : file_(file), path_(std::move(path)), storage_(storage) {}

  Status directory() {
    if (!looks_like_zip(file_.substr(0, 4)))
      return fail({path_}, "", "not an .npz trace container (not a zip archive)",
                  "make one with `sojourn trace import auto FILE... -o OUT.npz`");
    auto d = read_zip_directory(file_, path_);
    if (!d) return tl::unexpected(d.error());
    entries_ = std::move(*d);
    return {};
  }
  [[nodiscard]] const ZipEntry* member(const std::string& name) const {
    for (const ZipEntry& e : entries_)
      if (e.name == name + ".npy" || e.name == name) return &e;
    return nullptr;
  }
  Result<NpyHeader> header(const std::string& name) {
    const ZipEntry* e = member(name);
    if (e == nullptr) return fail({path_}, name, "the array is missing", missing_remedy(name));
    std::string head;
    auto ok = read_zip_member(
        file_, *e, path_,
        [&](std::string_view piece) -> Status {
          head.append(piece);
          return {};
        },
        kNpyHeaderMax + 16);
    if (!ok) return tl::unexpected(ok.error());
    return parse_npy(head, e->size, path_, name);
  }
  /// Header with the wanted dtype and rank in C order.
  Result<NpyHeader> header(const std::string& name, char kind, int item, std::size_t rank) {
    auto h = header(name);
    if (!h) return h;
    const std::string want = fmt::format("{}{} with {} dimension{}", kind, item, rank, rank == 1 ? "" : "s");
    if (h->kind != kind || h->item != item || (h->big_endian && item > 1) || h->shape.size() != rank)
      return fail({path_}, name, fmt::format("is {}, must be little-endian {}", h->text(), want),
                  kind == 'f' ? "convert with weights.astype('<f2')"
                              : fmt::format("convert with {}.astype('<{}{}')", name, kind, item));
    if (h->fortran && rank > 1)
      return fail({path_}, name, "is in Fortran order", "store numpy.ascontiguousarray(" + name + ")");
    return h;
  }
  Result<Array> load(const std::string& name, const NpyHeader& h) {
    const ZipEntry& e = *member(name);
    if (e.method == 0) {
      const std::string_view data = file_.substr(e.offset + h.data, h.bytes());
      // Alignment is relative to the map, which starts on a page (or on a malloc block when fuzzing).
      if (reinterpret_cast<std::uintptr_t>(data.data()) % 8 == 0) {
        auto ok = read_zip_member(file_, e, path_, [](std::string_view) -> Status { return {}; });
        if (!ok) return tl::unexpected(ok.error());
        return Array{h, data};
      }
    }
    auto temp = TempFile::create();
    if (!temp) return tl::unexpected(temp.error());
    std::uint64_t skip = h.data;
    auto ok = read_zip_member(file_, e, path_, [&](std::string_view piece) -> Status {
      const std::uint64_t n = std::min<std::uint64_t>(skip, piece.size());
      skip -= n;
      return piece.size() == n ? Status{} : temp->append(piece.substr(n));
    });
    if (!ok) return tl::unexpected(ok.error());
    auto map = MappedFile::of_descriptor(temp->fd(), temp->size(), path_);
    if (!map) return tl::unexpected(map.error());
    storage_.temporary.push_back(std::move(*map));
    return Array{h, storage_.temporary.back().bytes()};
  }
  Result<std::string> meta_text() {
    const ZipEntry* e = member("meta");
    if (e == nullptr) return fail({path_}, "meta", "the array is missing", missing_remedy("meta"));
    auto text = zip_member_text(file_, *e, path_, 64 << 20);
    if (!text) return text;
    auto h = parse_npy(*text, text->size(), path_, "meta");
    if (!h) return tl::unexpected(h.error());
    const std::string_view data = std::string_view(*text).substr(h->data);
    std::string out;
    if (h->kind == 'S' && h->elements == 1) {
      out = std::string(data);
      while (!out.empty() && out.back() == '\0') out.pop_back();
    } else if (h->kind == 'u' && h->item == 1) {
      out = std::string(data);
    } else if (h->kind == 'U' && h->elements == 1) {
      NpyHeader word;
      word.kind = 'u';
      word.item = 4;
      word.big_endian = h->big_endian;
      for (std::uint64_t i = 0; i < data.size() / 4; ++i) {
        const std::int64_t c = npy_integer(word, data, i);
        if (c == 0) break;
        append_utf8(out, static_cast<std::uint32_t>(c));
      }
    } else {
      return fail({path_}, "meta", "is " + h->text() + ", must be JSON text in one string",
                  "store numpy.array(json.dumps(meta))");
    }
    return out;
  }

 private:
  static std::string missing_remedy(const std::string& name) {
    return "a container holds topk_ids, sequence_id, position and meta; import other arrays with `sojourn trace import "
           "npz` (" +
           name + ")";
  }
  static void append_utf8(std::string& out, std::uint32_t c) {
    if (c > 0x10FFFF) c = 0xFFFD;
    if (c < 0x80) {
      out += static_cast<char>(c);
      return;
    }
    const int extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
    out += static_cast<char>(kLead[extra] | (c >> (6 * extra)));
    for (int i = extra - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((c >> (6 * i)) & 63));
  }
  std::string_view file_;
  std::string path_;
  Storage& storage_;
  std::vector<ZipEntry> entries_;
};

/// Ids below `experts` or 65535; experts named twice in a token are counted.
Status check_ids(NpzTrace& t, const std::string& path) {
  const auto k = static_cast<std::size_t>(t.info.top_k);
  std::int64_t twice = 0;
  std::vector<std::uint64_t> seen(static_cast<std::size_t>(t.info.experts),
                                  0);  // stamp of the row that last named the expert
  std::uint64_t row = 0;
  for (int l = 0; l < t.info.layers; ++l) {
    const auto ids = t.ids(l);
    for (std::size_t at = 0; at < ids.size(); at += k) {
      ++row;
      bool dup = false;
      for (std::size_t i = 0; i < k; ++i) {
        const std::uint16_t id = ids[at + i];
        if (id == 65535) continue;
        if (id >= t.info.experts)
          return fail({path}, fmt::format("topk_ids[{}][{}][{}]", l, at / k, i),
                      fmt::format("expert id {} with {} experts", id, t.info.experts),
                      "ids run from 0 to experts - 1; 65535 marks padding: mend the array or meta.experts");
        dup = dup || seen[id] == row;
        seen[id] = row;
      }
      twice += dup;
    }
  }
  if (twice > 0) t.info.warnings.push_back(fmt::format("{} rows name one expert twice", twice));
  return {};
}

Result<std::unique_ptr<Trace>> load_trace(std::string_view bytes, const std::string& path,
                                          std::unique_ptr<Storage> storage) {
  auto t = std::make_unique<NpzTrace>();
  Loader loader(bytes, path, *storage);
  if (auto ok = loader.directory(); !ok) return tl::unexpected(ok.error());
  if (loader.member("topk_ids") == nullptr && loader.member("loads") != nullptr)
    return fail({path}, "", "holds expert loads without token order, not a trace",
                "loads cannot become a trace: make one with `sojourn trace synth --fit " + path + "`");
  auto text = loader.meta_text();
  if (!text) return tl::unexpected(text.error());
  TraceMeta declared;
  if (auto bad = meta_from_json(*text, path, declared)) return tl::unexpected(*bad);
  auto ids = loader.header("topk_ids", 'u', 2, 3);
  auto sequence = loader.header("sequence_id", 'i', 4, 1);
  auto position = loader.header("position", 'i', 4, 1);
  Diagnostics all;
  for (const auto* h : {&ids, &sequence, &position})
    if (!*h) all.append(h->error().diagnostics);
  if (all.has_errors()) return fail(std::move(all));
  const auto layers = ids->shape[0], tokens = ids->shape[1], k = ids->shape[2];
  if (layers == 0 || tokens == 0 || k == 0 || layers > 4096 || k > 65535 || tokens > INT32_MAX)
    return fail({path}, "topk_ids", fmt::format("shape [{}] is not [layers, tokens, k]", fmt::join(ids->shape, ", ")),
                "1-4096 layers, 1-2147483647 tokens");
  const auto differs = [&](const char* name, const NpyHeader& h, std::uint64_t n) {
    if (h.elements != n)
      all.error({path}, name, fmt::format("{} entries for {} tokens", h.elements, tokens), "one entry a token");
  };
  differs("sequence_id", *sequence, tokens);
  differs("position", *position, tokens);
  const auto declares = [&](const char* name, std::int64_t says, std::uint64_t is) {
    if (says != 0 && static_cast<std::uint64_t>(says) != is)
      all.error({path}, std::string("meta.") + name, fmt::format("says {}, topk_ids has {}", says, is),
                "mend meta or the array");
  };
  declares("layers", declared.layers, layers);
  declares("tokens", declared.tokens, tokens);
  declares("top_k", declared.top_k, k);
  if (declared.experts == 0)
    all.error({path}, "meta.experts", "is missing", "say how many routed experts a layer has");
  else if (k > static_cast<std::uint64_t>(declared.experts))
    all.error({path}, "meta.experts", fmt::format("top-{} of only {} experts", k, declared.experts),
              "mend meta.experts");
  NpyHeader weights, phase;
  for (const auto& [name, header] : {std::pair<const char*, NpyHeader*>{"weights", &weights}, {"phase", &phase}}) {
    if (loader.member(name) == nullptr) continue;
    auto h = header == &weights ? loader.header(name, 'f', 2, 3) : loader.header(name, 'u', 1, 1);
    if (!h) {
      all.append(h.error().diagnostics);
      continue;
    }
    *header = *h;
    if (header == &weights && h->shape != ids->shape)
      all.error({path}, name, "shape " + h->text() + " differs from topk_ids " + ids->text(), "one weight an id");
    if (header == &phase) differs(name, *h, tokens);
  }
  if (all.has_errors()) return fail(std::move(all));

  t->info = std::move(declared);
  t->info.layers = static_cast<int>(layers);
  t->info.tokens = static_cast<std::int64_t>(tokens);
  t->info.top_k = static_cast<int>(k);
  t->info.name = std::filesystem::path(path).stem().string();
  storage->temporary.reserve(8);  // keeps nothing dangling: views point at maps, not at the vector, but be plain
  const auto load = [&](const char* name, const NpyHeader& h, auto& out) -> Status {
    auto a = loader.load(name, h);
    if (!a) return tl::unexpected(a.error());
    out = view<typename std::remove_reference_t<decltype(out)>::value_type>(*a);
    return {};
  };
  if (auto ok = load("topk_ids", *ids, t->all_ids); !ok) return tl::unexpected(ok.error());
  if (auto ok = load("sequence_id", *sequence, t->sequence); !ok) return tl::unexpected(ok.error());
  if (auto ok = load("position", *position, t->positions); !ok) return tl::unexpected(ok.error());
  if (weights.item != 0)
    if (auto ok = load("weights", weights, t->all_weights); !ok) return tl::unexpected(ok.error());
  if (phase.item != 0)
    if (auto ok = load("phase", phase, t->phases); !ok) return tl::unexpected(ok.error());
  if (auto ok = check_ids(*t, path); !ok) return tl::unexpected(ok.error());
  const auto sequences = static_cast<std::int64_t>(t->info.sequence_domain.size());
  for (std::size_t i = 0; i < t->sequence.size(); ++i) {
    if (t->sequence[i] < 0 || t->positions[i] < 0)
      return fail({path}, fmt::format("{}[{}]", t->sequence[i] < 0 ? "sequence_id" : "position", i), "is negative",
                  "number sequences and positions from 0");
    if (sequences > 0 && t->sequence[i] >= sequences)
      return fail({path}, fmt::format("sequence_id[{}]", i),
                  fmt::format("{} with {} entries in meta.sequence_domain", t->sequence[i], sequences),
                  "give every sequence a domain, or none");
  }
  storage->file.release_pages();
  for (const MappedFile& m : storage->temporary) m.release_pages();
  t->storage = std::move(storage);
  return std::unique_ptr<Trace>(std::move(t));
}

}  // namespace

NpzKind npz_kind(std::string_view bytes) {
  if (!looks_like_zip(bytes.substr(0, 4))) return NpzKind::other;
  const auto d = read_zip_directory(bytes, "");
  if (!d) return NpzKind::other;
  NpzKind kind = NpzKind::other;
  for (const ZipEntry& e : *d) {
    if (e.name == "topk_ids.npy") return NpzKind::trace;
    if (e.name == "loads.npy") kind = NpzKind::loads;
  }
  return kind;
}

Result<std::unique_ptr<Trace>> open_trace_bytes(std::string_view bytes, const std::string& path) {
  return load_trace(bytes, path, std::make_unique<Storage>());
}

Result<std::unique_ptr<Trace>> open_trace(const std::string& path) {
  try {
    auto storage = std::make_unique<Storage>();
    auto map = MappedFile::open(path);
    if (!map) return tl::unexpected(map.error());
    storage->file = std::move(*map);
    const std::string_view bytes = storage->file.bytes();
    auto trace = load_trace(bytes, path, std::move(storage));
    if (!trace) return trace;
    auto hash = sha256_file(path);
    if (!hash) return tl::unexpected(hash.error());
    static_cast<NpzTrace&>(**trace).info.sha256 = *hash;
    return trace;
  } catch (const std::bad_alloc&) {
    return fail({path}, "", "out of memory", "", 3);
  }
}

Result<LoadData> open_loads(const std::string& path) {
  auto storage = std::make_unique<Storage>();
  auto map = MappedFile::open(path);
  if (!map) return tl::unexpected(map.error());
  storage->file = std::move(*map);
  Loader loader(storage->file.bytes(), path, *storage);
  if (auto ok = loader.directory(); !ok) return tl::unexpected(ok.error());
  LoadData out;
  auto text = loader.meta_text();
  if (!text) return tl::unexpected(text.error());
  if (auto bad = meta_from_json(*text, path, out.meta)) return tl::unexpected(*bad);
  auto h = loader.header("loads", 'f', 8, 3);
  if (!h) return tl::unexpected(h.error());
  const auto& s = h->shape;
  if (s[0] == 0 || s[1] == 0 || s[2] == 0 || s[0] > (1 << 22) || s[1] > 4096 || s[2] > 65535 ||
      h->elements > (1U << 27))
    return fail({path}, "loads", fmt::format("shape [{}] is not [steps, layers, experts]", fmt::join(s, ", ")),
                "write it with `sojourn trace import`");
  auto a = loader.load("loads", *h);
  if (!a) return tl::unexpected(a.error());
  out.steps = static_cast<std::int64_t>(s[0]);
  out.layers = out.meta.layers = static_cast<int>(s[1]);
  out.experts = out.meta.experts = static_cast<int>(s[2]);
  const auto values = view<double>(*a);
  out.counts.assign(values.begin(), values.end());
  for (double v : out.counts)
    if (!(v >= 0 && v <= 1e18))
      return fail({path}, "loads", "holds a negative or unusable count", "write it with `sojourn trace import`");
  out.traffic = out.meta.training != "not traffic";
  out.meta.name = std::filesystem::path(path).stem().string();
  auto hash = sha256_file(path);
  if (!hash) return tl::unexpected(hash.error());
  out.meta.sha256 = *hash;
  return out;
}

}  // namespace sojourn
