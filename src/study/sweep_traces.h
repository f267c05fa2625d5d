// Which trace serves a model: opens each file once, knows the traces the user gave and the shipped ones.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sojourn/model.h"
#include "sojourn/trace.h"

namespace sojourn {

class TraceShelf {
 public:
  /// given: (model or "" for every model of its shape, file). Shipped traces lie in DIR/traces of the roots.
  TraceShelf(std::vector<std::pair<std::string, std::string>> given, std::vector<std::string> roots)
      : given_(std::move(given)), roots_(std::move(roots)) {}

  /// In this order: a file given for this model, one recorded from it, one of its shape, a shipped one that names it, a
  /// shipped one of its shape. Null with a finding when there is none.
  [[nodiscard]] std::shared_ptr<const Trace> find(const ModelShape& model, Diagnostics& errors);
  [[nodiscard]] bool used(const std::string& path) const { return used_.count(path) != 0; }

 private:
  std::shared_ptr<const Trace> look_up(const ModelShape& model, Diagnostics& errors);
  std::shared_ptr<const Trace> open(const std::string& path, Diagnostics& errors);
  const std::vector<std::string>& shipped();

  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> roots_;
  std::map<std::string, std::shared_ptr<const Trace>> open_;
  std::vector<std::string> shipped_;
  std::set<std::string> used_;
  bool listed_ = false;
};

}  // namespace sojourn
