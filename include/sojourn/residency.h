// Where expert replicas live: locations, actions and the versioned directory (HCRMap 4.3, 6.3, 6.8).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sojourn/package.h"
#include "sojourn/units.h"

namespace sojourn {

/// phi(r) = (t, c, b): storage tier, execution chiplet and backing bank set (a replica is striped over its banks).
struct Location {
  Tier tier = Tier::dram;
  int chiplet = 0;
  int bank_set = 0;
  bool operator==(const Location&) const = default;
};

/// An expert's weights are cut along the intermediate dimension f into kSlices equal slices (columns of gate and up,
/// rows of down). A replica holds a contiguous run of them: all for a whole copy, some for a shard. A token needs every
/// slice of its expert once; a shard's output is a partial sum, added up where the token is aggregated.
inline constexpr int kSlices = 16;
struct Slice {
  std::uint8_t first = 0, count = kSlices;
  bool operator==(const Slice&) const = default;
  [[nodiscard]] bool whole() const { return count == kSlices; }
  [[nodiscard]] bool valid() const { return count > 0 && end() <= kSlices; }
  [[nodiscard]] int end() const { return first + count; }
  [[nodiscard]] bool overlaps(const Slice& o) const { return first < o.end() && o.first < end(); }
  /// This slice's part of a quantity of the whole expert (bytes, MACs); parts of a partition sum to the whole exactly.
  [[nodiscard]] std::int64_t of(std::int64_t whole) const { return whole * end() / kSlices - whole * first / kSlices; }
};

enum class ReplicaState : std::uint8_t {
  free,     ///< slot unused
  pending,  ///< chunks still arriving: never a legal target
  live,     ///< published
  draining  ///< superseded; freed when its in-flight count reaches zero
};

/// One directory entry. The hardware entry is bounded at 64 B; see directory_bytes().
struct Replica {
  int layer = 0;  ///< MoE layer within this package, 0-based
  int expert = 0;
  Location at;
  Slice slice{};
  ReplicaState state = ReplicaState::free;
  std::uint32_t version = 0;  ///< nu_r: directory version that published it
  int born_window = 0;        ///< window of publication, for age
  bool initial = true;        ///< of the initial placement: no minimum age
  int last_used_window = 0;
  int in_flight = 0;  ///< token groups assigned and not finished
};

enum class ActionKind : std::uint8_t {
  no_op,
  promote,  ///< create a copy (replica < 0) or move `replica` to a nearer tier
  retain,   ///< keep as it is (counts as an explicit no-op)
  demote,   ///< move `replica` to a farther tier
  evict,    ///< drop an extra replica
  relocate  ///< move `replica` to another chiplet in the same tier (rivals' remapping)
};
[[nodiscard]] const char* action_name(ActionKind k);

struct Action {
  ActionKind kind = ActionKind::no_op;
  int layer = 0, expert = 0;
  int replica = -1;  ///< the replica moved, kept or dropped; -1 = a new copy
  Location to;       ///< target of promote, demote and relocate
  Slice slice{};     ///< of a new copy; a move keeps its replica's
};

/// Limits that legal() enforces; the same for every policy unless the policy's record says otherwise.
struct ResidencyLimits {
  int replicas_max = 4;          ///< R^max_{l,e}: copies of any one slice of an expert
  Bytes budget = 0;              ///< B_res of this package
  int updates_max = 1;           ///< U^max a package and window
  int age_min = 4;               ///< A^min, windows
  double link_threshold = 0.85;  ///< eta_u of (40)
};

/// Read-only face of the directory that policies and the mapper see: published replicas only.
class DirectoryView {
 public:
  virtual ~DirectoryView() = default;
  [[nodiscard]] virtual int layers() const = 0;
  [[nodiscard]] virtual int experts() const = 0;
  /// Ids of the live replicas of (layer, expert), oldest first; some of them hold every slice exactly once.
  [[nodiscard]] virtual std::span<const int> replicas(int layer, int expert) const = 0;
  [[nodiscard]] virtual const Replica& replica(int id) const = 0;
  [[nodiscard]] virtual std::uint32_t version() const = 0;
  /// Bytes held in a bank set: live, draining and pending replicas, and the model's fixed reservation.
  [[nodiscard]] virtual Bytes used(int bank_set) const = 0;
  [[nodiscard]] virtual Bytes free_bytes(int bank_set) const = 0;
  [[nodiscard]] virtual Bytes resident_bytes() const = 0;  ///< live + pending + draining expert bytes
  [[nodiscard]] virtual Bytes expert_bytes() const = 0;    ///< S^wt
  [[nodiscard]] virtual bool has_pending(int layer, int expert) const = 0;
  [[nodiscard]] virtual int migrations_in_flight() const = 0;
};

}  // namespace sojourn
