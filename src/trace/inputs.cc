// Expansion of inputs. Symbolic links are followed for files, not for folders (no cycles).
#include "trace/inputs.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

namespace sojourn {
namespace {
namespace fs = std::filesystem;

bool passed_over(const std::string& name) {
  return name.empty() || name[0] == '.' || name.rfind("README", 0) == 0 || name.rfind("LICENSE", 0) == 0 ||
         name.rfind("LICENCE", 0) == 0;
}

Status add_file(const std::string& path, bool named, std::vector<InputFile>& out) {
  auto map = MappedFile::open(path);
  if (!map) return tl::unexpected(map.error());
  InputFile f;
  f.path = path;
  std::error_code ec;
  const fs::path full = fs::absolute(path, ec);
  f.name = fs::path(path).filename().string();
  f.folder = full.parent_path().filename().string();
  f.named = named;
  f.map = std::make_shared<MappedFile>(std::move(*map));
  f.bytes = f.map->bytes();
  out.push_back(std::move(f));
  return {};
}

Status add_path(const std::string& path, bool named, std::vector<InputFile>& out) {
  std::error_code ec;
  if (!fs::is_directory(path, ec)) return add_file(path, named, out);
  std::vector<std::string> found;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, ec), end;
  for (; !ec && it != end; it.increment(ec)) {
    std::error_code ignore;
    if (it->is_regular_file(ignore) && !passed_over(it->path().filename().string()))
      found.push_back(it->path().string());
    if (found.size() > 1'000'000) return fail({path}, "", "more than a million files", "name a smaller folder");
  }
  if (ec) return fail({path}, "", "cannot list: " + ec.message(), "check its permissions", 3);
  if (found.empty()) return fail({path}, "", "the folder holds no files", "name a folder with trace files");
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) { return natural_less(a, b); });
  for (const std::string& f : found)
    if (auto ok = add_file(f, false, out); !ok) return ok;
  return {};
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      std::size_t x = i, y = j;
      while (x < a.size() && a[x] == '0') ++x;
      while (y < b.size() && b[y] == '0') ++y;
      std::size_t p = x, q = y;
      while (p < a.size() && digit(a[p])) ++p;
      while (q < b.size() && digit(b[q])) ++q;
      if (p - x != q - y) return p - x < q - y;
      if (const int c = a.substr(x, p - x).compare(b.substr(y, q - y)); c != 0) return c < 0;
      i = p;
      j = q;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;
}

Result<std::vector<InputFile>> expand_inputs(const std::vector<std::string>& arguments) {
  std::vector<InputFile> out;
  if (arguments.empty()) return fail({"<command line>"}, "IN", "no input given", "name files, folders or globs");
  for (const std::string& argument : arguments) {
    std::error_code ec;
    if (fs::exists(argument, ec) || argument.find_first_of("*?[") == std::string::npos) {
      if (auto ok = add_path(argument, true, out); !ok) return tl::unexpected(ok.error());
      continue;
    }
    glob_t g{};
    std::vector<std::string> found;
    if (::glob(argument.c_str(), GLOB_NOSORT, nullptr, &g) == 0)
      for (std::size_t i = 0; i < g.gl_pathc; ++i) found.emplace_back(g.gl_pathv[i]);
    ::globfree(&g);
    if (found.empty()) return fail({argument}, "", "no file matches", "check the pattern");
    std::sort(found.begin(), found.end(),
              [](const std::string& a, const std::string& b) { return natural_less(a, b); });
    for (const std::string& f : found)
      if (auto ok = add_path(f, false, out); !ok) return tl::unexpected(ok.error());
  }
  return out;
}

InputFile memory_input(std::string_view bytes, std::string path) {
  InputFile f;
  f.path = std::move(path);
  const auto slash = f.path.rfind('/');
  f.name = slash == std::string::npos ? f.path : f.path.substr(slash + 1);
  if (slash != std::string::npos) {
    const auto before = f.path.rfind('/', slash - 1);
    f.folder = f.path.substr(before == std::string::npos ? 0 : before + 1,
                             slash - (before == std::string::npos ? 0 : before + 1));
  }
  f.bytes = bytes;
  return f;
}

}  // namespace sojourn
