// One layer of one warm-up window on the event engine; see rehearsal.h.
#include "policy/rehearsal.h"

#include <algorithm>
#include <cmath>

#include "moe/closed_form.h"

namespace sojourn {
namespace {

/// A directory of one layer that never changes.
class FixedDirectory final : public DirectoryView {
 public:
  FixedDirectory(const Package& package, const ModelShape& model, std::span<const PlacedReplica> placed)
      : package_(package), expert_bytes_(model.expert_bytes()), of_(static_cast<size_t>(model.experts)) {
    for (const PlacedReplica& p : placed) {
      Replica r;
      r.layer = 0;
      r.expert = p.expert;
      r.at = p.at;
      r.slice = p.slice;
      r.state = ReplicaState::live;
      of_[static_cast<size_t>(p.expert)].push_back(static_cast<int>(replicas_.size()));
      replicas_.push_back(r);
      resident_ += p.slice.of(expert_bytes_);
    }
  }
  [[nodiscard]] int layers() const override { return 1; }
  [[nodiscard]] int experts() const override { return static_cast<int>(of_.size()); }
  [[nodiscard]] std::span<const int> replicas(int, int expert) const override {
    return of_[static_cast<size_t>(expert)];
  }
  [[nodiscard]] const Replica& replica(int id) const override { return replicas_[static_cast<size_t>(id)]; }
  [[nodiscard]] std::uint32_t version() const override { return 0; }
  [[nodiscard]] Bytes used(int) const override { return 0; }
  [[nodiscard]] Bytes free_bytes(int set) const override { return package_.bank_sets[static_cast<size_t>(set)].usable; }
  [[nodiscard]] Bytes resident_bytes() const override { return resident_; }
  [[nodiscard]] Bytes expert_bytes() const override { return expert_bytes_; }
  [[nodiscard]] bool has_pending(int, int) const override { return false; }
  [[nodiscard]] int migrations_in_flight() const override { return 0; }

 private:
  const Package& package_;
  Bytes expert_bytes_, resident_ = 0;
  std::vector<Replica> replicas_;
  std::vector<std::vector<int>> of_;
};

struct NoListener final : ExecutorListener {
  void on_job_done(int) override {}
  void on_transfer_done(std::uint32_t, Ps) override {}
};

std::vector<TokenGroup> deal(const Package& package, std::span<const double> tokens) {
  std::vector<TokenGroup> groups;
  const int n = package.compute_count;
  for (int source = 0; source < n; ++source)
    for (int e = 0; e < static_cast<int>(tokens.size()); ++e) {
      const int all = static_cast<int>(std::lround(tokens[static_cast<size_t>(e)]));
      const int mine = all / n + ((source + n - e % n) % n < all % n);
      if (mine > 0) groups.push_back({e, source, mine});
    }
  return groups;
}

}  // namespace

double Rehearsal::time(std::span<const PlacedReplica> placed, std::span<const double> tokens,
                       const RehearsedMapper& mapper) const {
  const FixedDirectory directory(package_, model_, placed);
  const std::vector<TokenGroup> groups = deal(package_, tokens);
  std::vector<Assignment> assignments;
  mapper(directory, {0, groups}, assignments);
  std::vector<Job> jobs;
  std::vector<Piece> pieces;
  std::vector<int> job_of(placed.size(), -1);
  for (const Assignment& a : assignments) {
    int& job = job_of[static_cast<size_t>(a.replica)];
    if (job < 0) {
      job = static_cast<int>(jobs.size());
      jobs.push_back({a.replica, directory.replica(a.replica).at, 0, directory.replica(a.replica).slice});
    }
    jobs[static_cast<size_t>(job)].tokens += a.tokens;
    pieces.push_back({job, groups[static_cast<size_t>(a.group)].source, a.tokens});
  }
  LayerWork work;
  work.jobs = &jobs;
  work.pieces = &pieces;
  work.expert_bytes = model_.expert_bytes();
  work.token_bytes = model_.activation_bytes_per_token();
  work.macs_per_token = model_.expert_macs_per_token();
  work.combine_macs_per_token = model_.hidden;
  LayerOutcome out;
  if (stages_in_turn_) {
    MigrationShare none;
    none.link.assign(package_.links.size(), 0);
    none.bank_set.assign(package_.bank_sets.size(), 0);
    Ledger ledger(package_);
    out = closed_layer(package_, work, none, 0, ledger);
  } else {
    NoListener listener;
    Executor executor(package_, listener);
    out = executor.run_layer(work);
  }
  return static_cast<double>(out.end - out.start) * 1e-12;
}

void map_to_all_shards(const DirectoryView& directory, const LayerTask& task, std::vector<Assignment>& out) {
  for (size_t g = 0; g < task.groups.size(); ++g) {
    if (task.groups[g].tokens <= 0) continue;
    for (int id : directory.replicas(task.layer, task.groups[g].expert))
      out.push_back({static_cast<int>(g), id, task.groups[g].tokens});
  }
}

}  // namespace sojourn
