// What the user names (files, folders, globs) as a sorted list of mapped files.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/file.h"

namespace sojourn {

/// One input file. `bytes` is the mapped content; `text_owner` keeps decompressed text alive (gzip).
struct InputFile {
  std::string path;    ///< as the user wrote it, or below the folder the user wrote
  std::string name;    ///< file name
  std::string folder;  ///< name of the folder the file is in
  bool named = true;   ///< the user named this very file (not found in a folder)
  std::string_view bytes;
  std::shared_ptr<MappedFile> map;
  [[nodiscard]] std::string_view head() const { return bytes.substr(0, 1 << 16); }
  [[nodiscard]] SourceSpan span() const { return {path}; }
};

/// Files in a deterministic order: arguments as given, folders and globs sorted by path with numbers compared as
/// numbers (prompt_99 before prompt_160). Folders are searched to any depth; hidden files, READMEs and licences are
/// passed over.
[[nodiscard]] Result<std::vector<InputFile>> expand_inputs(const std::vector<std::string>& arguments);
/// An input held in memory, for tests and fuzzing.
[[nodiscard]] InputFile memory_input(std::string_view bytes, std::string path);
/// Compares with runs of digits as numbers.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

}  // namespace sojourn
