// Memory maps, temporary files and atomic writes (POSIX).
#include "trace/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/output_target.h"

namespace sojourn {
namespace {

tl::unexpected<Failure> io_error(const std::string& path, const char* doing, const char* remedy, int code = 3) {
  return fail({path}, "", std::string(doing) + ": " + std::strerror(errno), remedy, code);
}

Status write_all(int fd, std::string_view bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_error(path, "cannot write", "is the disk full?");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

}  // namespace

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const bool user = errno == ENOENT || errno == ENOTDIR || errno == EISDIR;
    return io_error(path, "cannot open", "check the path and its permissions", user ? 2 : 3);
  }
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return fail({path}, "", "is not a regular file", "give a file (a directory is read only by `trace import`)");
  }
  auto out = of_descriptor(fd, static_cast<std::uint64_t>(st.st_size), path);
  ::close(fd);
  return out;
}

Result<MappedFile> MappedFile::of_descriptor(int fd, std::uint64_t size, const std::string& path) {
  MappedFile out;
  if (size == 0) return out;
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) return io_error(path, "cannot map", "is the file on a file system that can be mapped?");
  out.data_ = static_cast<const char*>(p);
  out.size_ = size;
  return out;
}

void MappedFile::release_pages() const {
  if (data_ != nullptr) ::madvise(const_cast<char*>(data_), size_, MADV_DONTNEED);
}

TempFile::~TempFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<TempFile> TempFile::create() {
  const char* env = std::getenv("TMPDIR");
  std::string tried;
  for (const std::string& folder :
       {std::string(env != nullptr ? env : ""), std::string("/var/tmp"), std::string("/tmp")}) {
    if (folder.empty()) continue;
    std::string name = folder + "/sojourn-XXXXXX";
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    tried += (tried.empty() ? "" : ", ") + folder;
    if (fd < 0) continue;
    ::unlink(name.c_str());
    TempFile out;
    out.fd_ = fd;
    return out;
  }
  return io_error(tried, "cannot make a temporary file", "set TMPDIR to a folder with room");
}

Status TempFile::append(std::string_view bytes) {
  auto done = write_all(fd_, bytes, size_, "temporary file");
  size_ += bytes.size();
  return done;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temp_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  AtomicFile out;
  out.path_ = real_target(path);
  if (is_special(out.path_))
    return fail({path, 0, 0}, "output", "is a device or pipe; a container is written whole and renamed",
                "give the path of a file");
  out.temp_ = out.path_ + ".tmp-XXXXXX";
  out.fd_ = ::mkostemp(out.temp_.data(), O_CLOEXEC);
  if (out.fd_ < 0) return io_error(path, "cannot create", "check that its folder exists and can be written");
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(out.fd_, 0666 & ~mask);
  return out;
}

Status AtomicFile::write(std::string_view bytes) {
  auto done = write_all(fd_, bytes, offset_, path_);
  offset_ += bytes.size();
  return done;
}

Status AtomicFile::write_at(std::uint64_t offset, std::string_view bytes) {
  return write_all(fd_, bytes, offset, path_);
}

Status AtomicFile::commit() {
  const int fd = fd_;
  fd_ = -1;
  const bool flushed = ::fsync(fd) == 0 || errno == EINVAL;
  const bool closed = ::close(fd) == 0;
  if (flushed && closed && ::rename(temp_.c_str(), path_.c_str()) == 0) return {};
  auto error = io_error(path_, "cannot finish writing", "is the disk full?");
  ::unlink(temp_.c_str());
  return error;
}

Status write_file(const std::string& path, std::string_view bytes) {
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  if (auto ok = file->write(bytes); !ok) return ok;
  return file->commit();
}

}  // namespace sojourn
