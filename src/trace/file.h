// Files as read-only memory maps, unlinked temporary files and atomic writes: a trace need not fit in memory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "sojourn/diagnostics.h"

namespace sojourn {

using Status = tl::expected<void, Failure>;

/// A whole file, mapped read-only; the pages belong to the page cache, not to us.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& o) noexcept { swap(o); }
  MappedFile& operator=(MappedFile&& o) noexcept {
    swap(o);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  /// Maps `size` bytes of an open descriptor; does not close it.
  [[nodiscard]] static Result<MappedFile> of_descriptor(int fd, std::uint64_t size, const std::string& path);
  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }
  /// Tells the kernel that the pages were read once and may go.
  void release_pages() const;

 private:
  void swap(MappedFile& o) {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
  }
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A file with no name: gone when closed, even after a crash. In $TMPDIR, else /var/tmp (a disk), else /tmp.
class TempFile {
 public:
  TempFile() = default;
  TempFile(TempFile&& o) noexcept : fd_(o.fd_), size_(o.size_) { o.fd_ = -1; }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile();
  [[nodiscard]] static Result<TempFile> create();
  [[nodiscard]] Status append(std::string_view bytes);
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// Writes a file beside its final name and renames it into place on commit(); removed if never committed.
class AtomicFile {
 public:
  AtomicFile() = default;
  AtomicFile(AtomicFile&& o) noexcept
      : fd_(o.fd_), path_(std::move(o.path_)), temp_(std::move(o.temp_)), offset_(o.offset_) {
    o.fd_ = -1;
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  [[nodiscard]] static Result<AtomicFile> create(const std::string& path);
  [[nodiscard]] Status write(std::string_view bytes);
  [[nodiscard]] Status write_at(std::uint64_t offset, std::string_view bytes);
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] Status commit();

 private:
  int fd_ = -1;
  std::string path_, temp_;
  std::uint64_t offset_ = 0;
};

[[nodiscard]] Status write_file(const std::string& path, std::string_view bytes);

}  // namespace sojourn
