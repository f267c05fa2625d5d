// Defaults of the policy interface: a policy that says nothing keeps its placement and uses the first live replica, or
// the first shards that make up the expert.
#include <cassert>

#include "policy/policies.h"
#include "residency/residency.h"

namespace sojourn {

void Policy::decide(const PolicyView& /*view*/, std::vector<Action>& /*out*/) {}

void Policy::assign(const PolicyView& view, const LayerTask& task, std::vector<Assignment>& out) {
  out.reserve(out.size() + task.groups.size());
  for (size_t g = 0; g < task.groups.size(); ++g) {
    const TokenGroup& group = task.groups[g];
    if (group.tokens <= 0) continue;
    const int first = view.directory->replicas(task.layer, group.expert).front();
    if (view.directory->replica(first).slice.whole()) {
      out.push_back({static_cast<int>(g), first, group.tokens});
    } else {
      for (int id : slice_cover(*view.directory, task.layer, group.expert))
        out.push_back({static_cast<int>(g), id, group.tokens});
    }
  }
}

std::unique_ptr<Policy> make_policy(const std::string& name, const std::map<std::string, Value>& with) {
  PolicyRegistry registry("policy");
  register_all_policies(registry);
  const auto* entry = registry.find(name);
  assert(entry != nullptr);
  ParamSet set;
  for (const Param& p : entry->info.params) set.set(p.name, p.default_value);
  for (const auto& [key, value] : with) set.set(key, value);
  return entry->factory(set);
}

}  // namespace sojourn
