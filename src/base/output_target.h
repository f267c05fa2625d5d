// Where an output really goes. Files are replaced whole (temporary file, rename), which must neither turn a device into
// a file nor a link into something else.
#pragma once
#include <filesystem>
#include <string>
#include <system_error>

namespace sojourn {

/// The file a path stands for: symbolic links followed, also to a file that is not there yet.
inline std::string real_target(const std::string& path) {
  std::error_code error;
  std::filesystem::path at(path);
  for (int hops = 0; hops < 40 && std::filesystem::is_symlink(at, error); ++hops) {
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

/// A device, pipe or socket: written in place, never replaced.
inline bool is_special(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error) &&
         !std::filesystem::is_directory(path, error);
}

}  // namespace sojourn
