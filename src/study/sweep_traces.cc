// Finds traces for models; see sweep_traces.h.
#include "study/sweep_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "study/simulate.h"

namespace sojourn {
namespace {

const SourceSpan kCommandLine{"<command line>", 0, 0};

}  // namespace

std::shared_ptr<const Trace> TraceShelf::find(const ModelShape& model, Diagnostics& errors) {
  std::shared_ptr<const Trace> found = look_up(model, errors);
  for (const auto& [path, trace] : open_)
    if (trace && trace == found) used_.insert(path);
  if (!found) return found;
  if (auto fine = replayable(found->meta(), model); !fine) {
    errors.append(fine.error().diagnostics);
    return nullptr;
  }
  return found;
}

std::shared_ptr<const Trace> TraceShelf::look_up(const ModelShape& model, Diagnostics& errors) {
  for (const auto& [name, path] : given_)
    if (name == model.name) return open(path, errors);
  for (const auto& [name, path] : given_) {
    if (!name.empty()) continue;
    std::shared_ptr<const Trace> t = open(path, errors);
    if (!t) return nullptr;
    if (recorded_from(t->meta(), model)) return t;
  }
  for (const auto& [name, path] : given_) {
    if (!name.empty()) continue;
    std::shared_ptr<const Trace> t = open(path, errors);
    if (t && t->meta().experts == model.experts && t->meta().top_k == model.top_k) return t;
  }
  for (const std::string& path : shipped()) {
    std::shared_ptr<const Trace> t = open(path, errors);
    if (!t) continue;
    const std::vector<std::string>& serves = t->meta().serves;
    if (std::find(serves.begin(), serves.end(), model.name) != serves.end()) return t;
  }
  for (const std::string& path : shipped()) {
    std::shared_ptr<const Trace> t = open(path, errors);
    if (t && t->meta().experts == model.experts && t->meta().top_k == model.top_k) return t;
  }
  errors.error(kCommandLine, "--trace",
               fmt::format("no trace for {} ({} experts, top-{})", model.name, model.experts, model.top_k),
               fmt::format("give one: --trace {}=FILE, or make one: sojourn trace synth", model.name));
  return nullptr;
}

std::shared_ptr<const Trace> TraceShelf::open(const std::string& path, Diagnostics& errors) {
  auto it = open_.find(path);
  if (it != open_.end()) return it->second;
  auto opened = open_trace(path);
  std::shared_ptr<const Trace> trace;
  if (opened)
    trace = std::move(*opened);
  else
    errors.append(opened.error().diagnostics);
  return open_[path] = trace;
}

const std::vector<std::string>& TraceShelf::shipped() {
  if (!listed_) {
    listed_ = true;
    for (const std::string& dir : roots_) {
      std::error_code ignored;
      for (const auto& entry : std::filesystem::directory_iterator(dir + "/traces", ignored))
        if (entry.path().extension() == ".npz") shipped_.push_back(entry.path().string());
    }
    std::sort(shipped_.begin(), shipped_.end());
  }
  return shipped_;
}

}  // namespace sojourn
