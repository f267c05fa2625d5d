// ZIP archives (PKWARE APPNOTE 6.3, with zip64): the directory of a mapped file, members in place or inflated in a
// stream, and a writer whose bytes depend only on what is written. Only the methods stored (0) and deflate (8) are
// known.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/file.h"

namespace sojourn {

struct ZipEntry {
  std::string name;
  std::uint16_t method = 0;
  std::uint64_t compressed = 0, size = 0;
  std::uint32_t crc = 0;
  std::uint64_t offset = 0;  ///< of the member's data in the file
};

/// True when the bytes start like a zip file.
[[nodiscard]] bool looks_like_zip(std::string_view head);

/// Every member, in directory order, with bounds checked against the file. `path` is for messages.
[[nodiscard]] Result<std::vector<ZipEntry>> read_zip_directory(std::string_view file, const std::string& path);

/// Feeds the member's bytes to `sink` in pieces; checks length and CRC. With `limit` only that many bytes, unchecked.
[[nodiscard]] Status read_zip_member(std::string_view file, const ZipEntry& entry, const std::string& path,
                                     const std::function<Status(std::string_view)>& sink,
                                     std::uint64_t limit = UINT64_MAX);
/// The same into a string; refuses members above `cap` bytes.
[[nodiscard]] Result<std::string> zip_member_text(std::string_view file, const ZipEntry& entry, const std::string& path,
                                                  std::uint64_t cap);
/// Inflates a gzip stream (several members too) of at most `cap` bytes.
[[nodiscard]] Result<std::string> gunzip(std::string_view bytes, const std::string& path, std::uint64_t cap);

/// Writes members one after the other, dates fixed at 1980-01-01, data aligned to 64 bytes so that stored arrays can be
/// mapped in place.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file) : file_(file) {}
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;
  ~ZipWriter();
  [[nodiscard]] Status begin(const std::string& name, bool compress);
  [[nodiscard]] Status write(std::string_view bytes);
  [[nodiscard]] Status end();
  [[nodiscard]] Status finish();

 private:
  [[nodiscard]] Status pump(std::string_view bytes, int flush);
  AtomicFile& file_;
  std::vector<ZipEntry> entries_;
  std::vector<std::uint64_t> headers_;
  z_stream stream_{};
  bool deflating_ = false;
};

}  // namespace sojourn
