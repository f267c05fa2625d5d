// Reads systems/<name>.toml; see reproduce_paper.h.
#include "study/reproduce_paper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>

#include "base/hash.h"
#include "config/reader.h"

namespace sojourn {
namespace {

namespace fs = std::filesystem;

std::string find_file(const std::string& name, const std::vector<std::string>& roots, std::set<std::string>& known) {
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) return name;
  std::error_code ignored;
  for (const std::string& root : roots) {
    const std::string path = root + "/systems/" + name + ".toml";
    if (fs::is_regular_file(path, ignored)) return path;
    for (const auto& entry : fs::directory_iterator(root + "/systems", ignored))
      if (entry.path().extension() == ".toml") known.insert(entry.path().stem().string());
  }
  return {};
}

}  // namespace

const PaperNumber* PaperNumbers::find(const std::string& id) const {
  for (const PaperNumber& n : numbers)
    if (n.id == id) return &n;
  return nullptr;
}

Result<PaperNumbers> load_paper_numbers(const std::string& name, const std::vector<std::string>& roots) {
  std::set<std::string> known;
  const std::string path = find_file(name, roots, known);
  if (path.empty()) {
    const std::vector<std::string> names(known.begin(), known.end());
    const std::string near = closest(name, names);
    return fail({"<command line>", 0, 0}, "SYSTEM", fmt::format("unknown system '{}'", name),
                (near.empty() ? "" : "did you mean " + near + "? ") + fmt::format("known: {}", fmt::join(names, ", ")));
  }
  auto file = ConfigFile::parse_file(path);
  if (!file) return tl::unexpected<Failure>(file.error());
  Diagnostics problems;
  TableReader root = file->root(problems);
  PaperNumbers p;
  p.name = root.text("name");
  p.title = root.text("title");
  p.publication = root.text("publication");
  p.models = root.text("models");
  p.prefill_tokens = static_cast<int>(root.integer("prefill_tokens", Range{1, 1 << 20}));
  p.decode_tokens = static_cast<int>(root.integer("decode_tokens", Range{1, 1 << 20}));
  p.copies = root.number("copies", Range{1, 64});
  p.updates_max = static_cast<int>(root.integer("updates_max", Range{0, 1 << 20}));
  for (TableReader& t : root.tables("number", true)) {
    PaperNumber n;
    n.id = t.text("id");
    n.value = t.number("value", Range{});
    n.unit = t.text("unit");
    n.source = t.text("source");
    n.bound = t.flag("bound", false);
    if (p.find(n.id) != nullptr) t.error("id", fmt::format("'{}' is there twice", n.id), "give each number one id");
    t.finish();
    p.numbers.push_back(std::move(n));
  }
  for (TableReader& t : root.tables("compare")) {
    PaperComparison c{t.text("mode"), t.text("policy"), t.text("against"), t.text("number"), t.text("note", "")};
    if (p.find(c.number) == nullptr)
      t.error("number", fmt::format("there is no number '{}'", c.number), "name the id of a [[number]]");
    t.finish();
    p.comparisons.push_back(std::move(c));
  }
  root.finish();
  if (problems.has_errors()) return fail(in_file_order(problems));
  p.sha256 = sha256_hex(file->text());
  return p;
}

}  // namespace sojourn
