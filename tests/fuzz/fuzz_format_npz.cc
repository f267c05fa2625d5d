// Fuzzes the container reader: the bytes as they are, and again with the CRCs of stored members mended so that damage
// gets past them to the array and meta checks.
#include <zlib.h>

#include <string>

#include "format_fuzz.h"
#include "trace/container.h"
#include "trace/zip.h"

namespace {

std::uint32_t get(const std::string& s, std::size_t at) {
  std::uint32_t v = 0;
  for (int i = 0; i < 4; ++i)
    v |= std::uint32_t{static_cast<unsigned char>(s[at + static_cast<std::size_t>(i)])} << (8 * i);
  return v;
}

void mend(std::string& s) {
  const auto entries = sojourn::read_zip_directory(s, "fuzz.npz");
  if (!entries) return;
  std::size_t n = 0;
  for (std::size_t at = 0; at + 46 <= s.size() && n < entries->size(); ++at) {
    if (get(s, at) != 0x02014b50) continue;
    const sojourn::ZipEntry& e = (*entries)[n++];
    if (e.method != 0) continue;
    const auto crc = crc32_z(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(s.data() + e.offset), e.size);
    for (int i = 0; i < 4; ++i) s[at + 16 + static_cast<std::size_t>(i)] = static_cast<char>((crc >> (8 * i)) & 255);
  }
}

void open(const std::string& s) {
  const auto t = sojourn::open_trace_bytes(s, "fuzz.npz");
  if (!t) return;
  const sojourn::TraceMeta& m = (*t)->meta();
  sojourn::require(m.layers > 0 && m.tokens > 0 && m.top_k > 0 && m.top_k <= m.experts);
  for (int l = 0; l < m.layers; ++l)
    for (std::uint16_t id : (*t)->ids(l)) sojourn::require(id < m.experts || id == 65535);
  if (m.experts < 4096 && m.layers < 64) (void)sojourn::trace_stats(**t);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string s(reinterpret_cast<const char*>(data), size);
  open(s);
  mend(s);
  open(s);
  sojourn::fuzz_formats(s, {{"npy", "fuzz.npz"}, {"npy-counts", "fuzz.npz"}});
  return 0;
}
