// Picks and reads the array of an input. Arrays are limited to 4 GiB here, since an import is held in memory.
#include "trace/array_input.h"

#include <fmt/format.h>

#include "trace/zip.h"

namespace sojourn {
namespace {

constexpr std::uint64_t kMaxArray = 4ULL << 30;
constexpr const char* kLikely[] = {"topk_ids",         "ids",    "routed_experts", "experts", "expert_ids",
                                   "selected_experts", "counts", "loads",          "arr_0"};

struct Member {
  ZipEntry entry;
  NpyHeader header;
};

Result<Member> pick(const InputFile& f, const std::string& wanted) {
  auto directory = read_zip_directory(f.bytes, f.path);
  if (!directory) return tl::unexpected(directory.error());
  std::vector<Member> arrays;
  std::string names;
  for (const ZipEntry& e : *directory) {
    if (e.name.size() < 5 || e.name.substr(e.name.size() - 4) != ".npy") continue;
    std::string head;
    auto ok = read_zip_member(
        f.bytes, e, f.path,
        [&](std::string_view piece) -> Status {
          head.append(piece);
          return {};
        },
        kNpyHeaderMax + 16);
    if (!ok) return tl::unexpected(ok.error());
    auto h = parse_npy(head, e.size, f.path, e.name);
    const std::string name = e.name.substr(0, e.name.size() - 4);
    names += (names.empty() ? "" : ", ") + name;
    if (!h) {
      if (name == wanted) return tl::unexpected(h.error());
      continue;
    }
    if (!wanted.empty() && name != wanted) continue;
    arrays.push_back({e, *h});
    if (arrays.size() > 1000) break;
  }
  if (arrays.size() == 1) return arrays[0];
  for (const char* likely : kLikely)
    for (const Member& m : arrays)
      if (m.entry.name == std::string(likely) + ".npy") return m;
  std::vector<const Member*> deep;
  for (const Member& m : arrays)
    if (m.header.shape.size() >= 2 && (is_integer(m.header) || m.header.kind == 'f')) deep.push_back(&m);
  if (deep.size() == 1) return *deep[0];
  return fail(f.span(), "",
              arrays.empty() ? "holds no such array (arrays: " + names + ")" : "holds several arrays: " + names,
              "say which with --set array=NAME");
}

}  // namespace

bool is_integer(const NpyHeader& h) { return h.kind == 'i' || h.kind == 'u'; }

std::uint64_t ArrayInput::at(std::initializer_list<std::uint64_t> index) const {
  std::uint64_t out = 0, scale = 1;
  if (!header.fortran) {
    std::size_t d = 0;
    for (std::uint64_t i : index) out = out * header.shape[d++] + i;
    return out;
  }
  std::size_t d = 0;
  for (std::uint64_t i : index) {
    out += i * scale;
    scale *= header.shape[d++];
  }
  return out;
}

Result<NpyHeader> array_header(const InputFile& f, const std::string& wanted) {
  if (looks_like_npy(f.head())) return parse_npy(f.bytes.substr(0, kNpyHeaderMax + 16), f.bytes.size(), f.path, "");
  if (!looks_like_zip(f.head())) return fail(f.span(), "", "neither .npy nor .npz", "write it with numpy.save");
  auto m = pick(f, wanted);
  if (!m) return tl::unexpected(m.error());
  return m->header;
}

Result<ArrayInput> read_array(const InputFile& f, const std::string& wanted) {
  ArrayInput out;
  if (!looks_like_zip(f.head())) {
    auto h = array_header(f, wanted);
    if (!h) return tl::unexpected(h.error());
    out.header = *h;
    out.data = f.bytes.substr(h->data);
    return out;
  }
  auto m = pick(f, wanted);
  if (!m) return tl::unexpected(m.error());
  out.header = m->header;
  if (m->entry.method == 0) {
    out.data = f.bytes.substr(m->entry.offset + m->header.data, m->header.bytes());
    return out;
  }
  auto text = zip_member_text(f.bytes, m->entry, f.path, kMaxArray);
  if (!text) return tl::unexpected(text.error());
  out.owned = std::make_shared<std::string>(std::move(*text));
  out.data = std::string_view(*out.owned).substr(m->header.data);
  return out;
}

}  // namespace sojourn
