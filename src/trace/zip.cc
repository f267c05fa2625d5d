// Reading and writing ZIP. Every length in the file is treated as hostile: bounds are checked before use and a deflated
// member that claims more than deflate can expand to (1032:1) is refused before anything is allocated.
#include "trace/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sojourn {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr const char* kRemedy = "the file is damaged or truncated: copy it again";

std::uint64_t get(std::string_view s, std::uint64_t at, int bytes) {
  std::uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) v |= std::uint64_t{static_cast<unsigned char>(s[at + i])} << (8 * i);
  return v;
}

void put(std::string& s, std::uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) s += static_cast<char>((v >> (8 * i)) & 255);
}

struct Directory {
  std::uint64_t count = 0, size = 0, offset = 0;
};

/// Finds the end-of-directory record (it may be followed by a comment of up to 65,535 bytes).
Result<Directory> find_directory(std::string_view file, const std::string& path) {
  if (file.size() < 22) return fail({path}, "", fmt::format("not a zip archive ({} bytes)", file.size()), kRemedy);
  const std::uint64_t last = file.size() - 22;
  const std::uint64_t first = last > 65535 ? last - 65535 : 0;
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (get(file, at, 4) != kEnd) continue;
    Directory d{get(file, at + 10, 2), get(file, at + 12, 4), get(file, at + 16, 4)};
    const bool wide = d.count == 0xFFFF || d.size == 0xFFFFFFFF || d.offset == 0xFFFFFFFF;
    if (wide && at >= 20 && get(file, at - 20, 4) == kLocator64) {
      const std::uint64_t record = get(file, at - 12, 8);
      if (record > file.size() || file.size() - record < 56 || get(file, record, 4) != kEnd64)
        return fail({path}, "", "the zip64 end record lies outside the file", kRemedy);
      d = {get(file, record + 32, 8), get(file, record + 40, 8), get(file, record + 48, 8)};
    }
    if (d.offset > at || d.size > at - d.offset)
      return fail({path}, "", "the zip directory lies outside the file", kRemedy);
    return d;
  }
  return fail({path}, "", "not a zip archive, or cut off: no end-of-directory record", kRemedy);
}

/// Takes 64-bit sizes from the zip64 extra field where the 32-bit ones are saturated.
bool widen(std::string_view extra, std::uint64_t& size, std::uint64_t& compressed, std::uint64_t& header) {
  while (extra.size() >= 4) {
    const std::uint64_t id = get(extra, 0, 2), n = get(extra, 2, 2);
    if (n > extra.size() - 4) return false;
    std::string_view field = extra.substr(4, n);
    if (id == 1) {
      for (std::uint64_t* v : {&size, &compressed, &header}) {
        if (*v != 0xFFFFFFFF) continue;
        if (field.size() < 8) return false;
        *v = get(field, 0, 8);
        field.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + n);
  }
  return true;
}

}  // namespace

bool looks_like_zip(std::string_view head) {
  return head.size() >= 4 && (std::memcmp(head.data(), "PK\3\4", 4) == 0 || std::memcmp(head.data(), "PK\5\6", 4) == 0);
}

Result<std::vector<ZipEntry>> read_zip_directory(std::string_view file, const std::string& path) {
  const auto directory = find_directory(file, path);
  if (!directory) return tl::unexpected(directory.error());
  std::vector<ZipEntry> out;
  std::uint64_t at = directory->offset;
  const std::uint64_t end = directory->offset + directory->size;
  for (std::uint64_t i = 0; i < directory->count; ++i) {
    if (end - at < 46 || get(file, at, 4) != kCentral)
      return fail({path}, "", fmt::format("zip directory entry {} of {} is damaged", i + 1, directory->count), kRemedy);
    ZipEntry e;
    e.method = static_cast<std::uint16_t>(get(file, at + 10, 2));
    e.crc = static_cast<std::uint32_t>(get(file, at + 16, 4));
    e.compressed = get(file, at + 20, 4);
    e.size = get(file, at + 24, 4);
    const std::uint64_t name = get(file, at + 28, 2), extra = get(file, at + 30, 2), comment = get(file, at + 32, 2);
    std::uint64_t header = get(file, at + 42, 4);
    if (name + extra + comment > end - at - 46)
      return fail({path}, "", fmt::format("zip directory entry {} runs past the directory", i + 1), kRemedy);
    e.name = std::string(file.substr(at + 46, name));
    const bool encrypted = (get(file, at + 8, 2) & 1) != 0;
    if (!widen(file.substr(at + 46 + name, extra), e.size, e.compressed, header))
      return fail({path}, e.name, "damaged zip64 sizes", kRemedy);
    at += 46 + name + extra + comment;
    if (encrypted) return fail({path}, e.name, "the member is encrypted", "write the archive without a password");
    if (header > file.size() || file.size() - header < 30 || get(file, header, 4) != kLocal)
      return fail({path}, e.name, "the member's header lies outside the file", kRemedy);
    const std::uint64_t skip = 30 + get(file, header + 26, 2) + get(file, header + 28, 2);
    if (file.size() - header < skip || file.size() - header - skip < e.compressed)
      return fail({path}, e.name, "the member's data run past the end of the file", kRemedy);
    e.offset = header + skip;
    if (e.method != 0 && e.method != 8)
      return fail({path}, e.name, fmt::format("zip compression method {} is not supported", e.method),
                  "write it with numpy.savez or numpy.savez_compressed");
    const std::uint64_t most =
        e.method == 0 ? e.compressed : (e.compressed > (UINT64_MAX >> 12) ? UINT64_MAX : e.compressed * 1032 + 64);
    if (e.size > most || (e.method == 0 && e.size != e.compressed))
      return fail({path}, e.name,
                  fmt::format("claims {} bytes, impossible for {} bytes in the archive", e.size, e.compressed),
                  kRemedy);
    out.push_back(std::move(e));
  }
  return out;
}

Status read_zip_member(std::string_view file, const ZipEntry& entry, const std::string& path,
                       const std::function<Status(std::string_view)>& sink, std::uint64_t limit) {
  std::string_view in = file.substr(entry.offset, entry.compressed);
  const std::uint64_t want = std::min(entry.size, limit);
  std::uint64_t produced = 0;
  uLong crc = crc32(0, nullptr, 0);
  const auto emit = [&](std::string_view piece) -> Status {
    piece = piece.substr(0, std::min<std::uint64_t>(piece.size(), want - produced));
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    produced += piece.size();
    return piece.empty() ? Status{} : sink(piece);
  };
  if (entry.method == 0) {
    for (std::uint64_t at = 0; at < want; at += 1 << 20)
      if (auto ok = emit(in.substr(at, 1 << 20)); !ok) return ok;
  } else {
    z_stream z{};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return fail({path}, entry.name, "out of memory", "", 3);
    struct End {
      z_stream* z;
      ~End() { inflateEnd(z); }
    } closer{&z};
    std::string buffer(1 << 16, '\0');
    int code = Z_OK;
    while (code == Z_OK && produced < want) {
      if (z.avail_in == 0 && !in.empty()) {
        const std::size_t n = std::min<std::size_t>(in.size(), 1 << 20);
        z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
        z.avail_in = static_cast<uInt>(n);
        in.remove_prefix(n);
      }
      z.next_out = reinterpret_cast<Bytef*>(buffer.data());
      z.avail_out = static_cast<uInt>(buffer.size());
      code = inflate(&z, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END) break;
      if (auto ok = emit({buffer.data(), buffer.size() - z.avail_out}); !ok) return ok;
    }
    if (produced < want) return fail({path}, entry.name, "the compressed data are damaged or cut off", kRemedy);
  }
  if (limit >= entry.size && crc != entry.crc)
    return fail({path}, entry.name, "CRC mismatch: the data are damaged", kRemedy);
  return {};
}

Result<std::string> zip_member_text(std::string_view file, const ZipEntry& entry, const std::string& path,
                                    std::uint64_t cap) {
  if (entry.size > cap)
    return fail({path}, entry.name, fmt::format("{} bytes, more than the {} allowed here", entry.size, cap), "");
  std::string out;
  auto ok = read_zip_member(file, entry, path, [&](std::string_view piece) -> Status {
    out.append(piece);
    return {};
  });
  if (!ok) return tl::unexpected(ok.error());
  return out;
}

Result<std::string> gunzip(std::string_view bytes, const std::string& path, std::uint64_t cap) {
  z_stream z{};
  if (inflateInit2(&z, MAX_WBITS + 16) != Z_OK) return fail({path}, "", "out of memory", "", 3);
  struct End {
    z_stream* z;
    ~End() { inflateEnd(z); }
  } closer{&z};
  std::string out, buffer(1 << 16, '\0');
  int code = Z_OK;
  while (true) {
    if (z.avail_in == 0 && !bytes.empty()) {
      const std::size_t n = std::min<std::size_t>(bytes.size(), 1 << 20);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      z.avail_in = static_cast<uInt>(n);
      bytes.remove_prefix(n);
    }
    z.next_out = reinterpret_cast<Bytef*>(buffer.data());
    z.avail_out = static_cast<uInt>(buffer.size());
    code = inflate(&z, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) return fail({path}, "", "the gzip data are damaged or cut off", kRemedy);
    out.append(buffer.data(), buffer.size() - z.avail_out);
    if (out.size() > cap)
      return fail({path}, "", fmt::format("expands to more than {} bytes", cap), "split the file into smaller ones");
    if (code == Z_STREAM_END) {
      if (z.avail_in == 0 && bytes.empty()) return out;
      if (inflateReset(&z) != Z_OK) return fail({path}, "", "the gzip data are damaged", kRemedy);
    }
  }
}

ZipWriter::~ZipWriter() {
  if (deflating_) deflateEnd(&stream_);
}

Status ZipWriter::begin(const std::string& name, bool compress) {
  ZipEntry e;
  e.name = name;
  e.method = compress ? 8 : 0;
  headers_.push_back(file_.offset());
  const std::uint64_t fixed = file_.offset() + 30 + name.size() + 20 + 4;
  const std::uint64_t pad = (64 - fixed % 64) % 64;
  std::string h;
  put(h, kLocal, 4);
  put(h, 45, 2);
  put(h, 0, 2);
  put(h, e.method, 2);
  put(h, 0, 2);
  put(h, 0x21, 2);  // 1980-01-01
  put(h, 0, 4);     // CRC, patched by end()
  put(h, 0xFFFFFFFF, 4);
  put(h, 0xFFFFFFFF, 4);
  put(h, name.size(), 2);
  put(h, 20 + 4 + pad, 2);
  h += name;
  put(h, 1, 2);  // zip64 sizes, patched by end()
  put(h, 16, 2);
  put(h, 0, 8);
  put(h, 0, 8);
  put(h, 0xD935, 2);  // alignment padding, as zipalign writes it
  put(h, pad, 2);
  h.append(pad, '\0');
  if (auto ok = file_.write(h); !ok) return ok;
  e.offset = file_.offset();
  e.crc = static_cast<std::uint32_t>(crc32(0, nullptr, 0));
  entries_.push_back(std::move(e));
  if (compress) {
    stream_ = {};
    if (deflateInit2(&stream_, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      return fail({}, "", "out of memory while compressing", "", 3);
    deflating_ = true;
  }
  return {};
}

Status ZipWriter::pump(std::string_view bytes, int flush) {
  char buffer[1 << 15];
  do {
    const std::size_t n = std::min<std::size_t>(bytes.size(), 1 << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(n);
    bytes.remove_prefix(n);
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = sizeof buffer;
      deflate(&stream_, bytes.empty() ? flush : Z_NO_FLUSH);
      if (auto ok = file_.write({buffer, sizeof buffer - stream_.avail_out}); !ok) return ok;
    } while (stream_.avail_out == 0);
  } while (!bytes.empty());
  return {};
}

Status ZipWriter::write(std::string_view bytes) {
  ZipEntry& e = entries_.back();
  e.crc = static_cast<std::uint32_t>(crc32_z(e.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  e.size += bytes.size();
  return e.method == 8 ? pump(bytes, Z_NO_FLUSH) : file_.write(bytes);
}

Status ZipWriter::end() {
  if (deflating_) {
    if (auto ok = pump({}, Z_FINISH); !ok) return ok;
    deflateEnd(&stream_);
    deflating_ = false;
  }
  ZipEntry& e = entries_.back();
  e.compressed = file_.offset() - e.offset;
  std::string crc, sizes;
  put(crc, e.crc, 4);
  put(sizes, e.size, 8);
  put(sizes, e.compressed, 8);
  if (auto ok = file_.write_at(headers_.back() + 14, crc); !ok) return ok;
  return file_.write_at(headers_.back() + 30 + e.name.size() + 4, sizes);
}

Status ZipWriter::finish() {
  const std::uint64_t start = file_.offset();
  std::string d;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ZipEntry& e = entries_[i];
    const bool wide = e.size >= 0xFFFFFFFF || e.compressed >= 0xFFFFFFFF || headers_[i] >= 0xFFFFFFFF;
    put(d, kCentral, 4);
    put(d, 45, 2);
    put(d, 45, 2);
    put(d, 0, 2);
    put(d, e.method, 2);
    put(d, 0, 2);
    put(d, 0x21, 2);
    put(d, e.crc, 4);
    put(d, wide ? 0xFFFFFFFF : e.compressed, 4);
    put(d, wide ? 0xFFFFFFFF : e.size, 4);
    put(d, e.name.size(), 2);
    put(d, wide ? 28 : 0, 2);
    put(d, 0, 2);
    put(d, 0, 2);
    put(d, 0, 2);
    put(d, 0, 4);
    put(d, wide ? 0xFFFFFFFF : headers_[i], 4);
    d += e.name;
    if (!wide) continue;
    put(d, 1, 2);
    put(d, 24, 2);
    put(d, e.size, 8);
    put(d, e.compressed, 8);
    put(d, headers_[i], 8);
  }
  const std::uint64_t size = d.size();
  if (start >= 0xFFFFFFFF) {
    const std::uint64_t record = start + size;
    put(d, kEnd64, 4);
    put(d, 44, 8);
    put(d, 45, 2);
    put(d, 45, 2);
    put(d, 0, 4);
    put(d, 0, 4);
    put(d, entries_.size(), 8);
    put(d, entries_.size(), 8);
    put(d, size, 8);
    put(d, start, 8);
    put(d, kLocator64, 4);
    put(d, 0, 4);
    put(d, record, 8);
    put(d, 1, 4);
  }
  put(d, kEnd, 4);
  put(d, 0, 4);
  put(d, entries_.size(), 2);
  put(d, entries_.size(), 2);
  put(d, size, 4);
  put(d, start >= 0xFFFFFFFF ? 0xFFFFFFFF : start, 4);
  put(d, 0, 2);
  return file_.write(d);
}

}  // namespace sojourn
