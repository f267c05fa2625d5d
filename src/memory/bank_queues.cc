// A channel whose transaction queue feeds a short queue at each bank; the banks are served round robin.
//
// Equations and sources: channel.h. Rules of this shape:
//   a cycle admits one transaction, the first whose bank queue has room, to be served from the next cycle on; a bank
//   offers its first ready command; it closes a row when the head of its queue wants another and no one behind wants
//   the open one, or after four reads of it; a waiting refresh closes one bank a cycle and stops all queues; with split
//   buses the round goes on after the first command and takes one more if it is for the other bus.
// Assumptions: the cap of four reads and the round are those of the reference data's controller (docs/memory.md).
#include "memory/bank_queues.h"

#include <algorithm>
#include <limits>

namespace sojourn::dram {
namespace {
constexpr Cycle kNever = std::numeric_limits<Cycle>::max();
constexpr int kHitCap = 4;
}  // namespace

BankQueues::BankQueues(const DramRecord& r)
    : r_(r),
      banks_(static_cast<std::size_t>(r.all_banks())),
      groups_(static_cast<std::size_t>(r.groups())),
      next_refresh_(r.refi) {
  arrivals_.reserve(static_cast<std::size_t>(r.queue));
}

void BankQueues::push(Cycle /*now*/, std::int64_t id, const Place& place) {
  arrivals_.push_back({id, place.row, place.bank});
  stuck_ = false;
}

void BankQueues::find_hit(Bank& b) const {
  b.first_hit = -1;
  for (std::size_t i = 0; i < b.queue.size() && b.first_hit < 0; ++i)
    if (b.queue[i].row == b.row) b.first_hit = static_cast<int>(i);
}

BankQueues::Candidate BankQueues::candidate(int bank, Cycle now, Cycle& next) const {
  const Bank& b = banks_[bank];
  const int group = bank / r_.banks;
  if (b.queue.empty()) return {};
  const auto ready = [&](Cycle at) {
    if (at <= now) return true;
    next = std::min(next, at);
    return false;
  };
  if (b.row < 0) {
    const Cycle at = std::max({b.act, groups_[group].act, act_, last_acts_[oldest_act_] + r_.faw});
    return ready(at) ? Candidate{Kind::activate, 0} : Candidate{};
  }
  const bool may_close = b.first_hit != 0 && (b.first_hit < 0 || b.hits >= kHitCap);
  if (may_close && ready(b.pre)) return {Kind::precharge, 0};
  if (b.first_hit >= 0 && ready(std::max({b.read, groups_[group].read, read_}))) return {Kind::read, b.first_hit};
  return {};
}

void BankQueues::close(int bank, Cycle now) {
  Bank& b = banks_[bank];
  b.row = -1;
  b.hits = 0;
  b.first_hit = -1;
  b.act = std::max(b.act, now + r_.rp);
  b.refresh = std::max(b.refresh, now + r_.rp);
  if (--open_ == 0) counts_.active_cycles += now - open_since_;
  ++counts_.precharges;
}

void BankQueues::issue(int bank, const Candidate& c, Cycle now, std::vector<Done>& done) {
  Bank& b = banks_[bank];
  const int group = bank / r_.banks;
  if (c.kind == Kind::precharge) return close(bank, now);
  if (c.kind == Kind::activate) {
    b.row = b.queue.front().row;
    b.hits = 0;
    find_hit(b);
    b.read = std::max(b.read, now + r_.rcd);
    b.pre = std::max(b.pre, now + r_.ras);
    b.act = now + r_.rc;
    groups_[group].act = now + r_.rrd_l;
    act_ = now + r_.rrd_s;
    last_acts_[oldest_act_] = now;
    oldest_act_ = (oldest_act_ + 1) % 4;
    if (open_++ == 0) open_since_ = now;
    ++counts_.activates;
    return;
  }
  done.push_back({b.queue[c.index].id, now + r_.cl + r_.burst});
  b.queue.erase(b.queue.begin() + c.index);
  --queued_;
  ++b.hits;
  find_hit(b);
  b.pre = std::max(b.pre, now + r_.rtp);
  groups_[group].read = now + std::max(r_.burst, r_.ccd_l);
  read_ = now + std::max(r_.burst, r_.ccd_s);
  stuck_ = false;
  ++counts_.reads;
}

bool BankQueues::refresh_command(Cycle now, Cycle& next) {
  Cycle all = 0;
  for (std::size_t i = 0; i < banks_.size(); ++i) {
    const Bank& b = banks_[i];
    if (b.row >= 0) {
      all = kNever;
      if (b.pre <= now) {
        close(static_cast<int>(i), now);
        return true;
      }
      next = std::min(next, b.pre);
    } else if (all != kNever) {
      all = std::max(all, b.refresh);
    }
  }
  if (all == kNever) return false;
  if (all > now) {
    next = std::min(next, all);
    return false;
  }
  for (Bank& b : banks_) {
    b.act = std::max(b.act, now + r_.rfc);
    b.refresh = std::max(b.refresh, now + r_.rfc);
  }
  refresh_due_ = false;
  ++counts_.refreshes;
  return true;
}

/// The next bank in the round with a ready command, or -1; the round goes on after it.
int BankQueues::pick(Cycle now, Candidate& c, Cycle& next) {
  if (refresh_due_ || queued_ == 0) return -1;
  const int count = static_cast<int>(banks_.size());
  for (int i = 0; i < count; ++i) {
    const int bank = turn_ + 1 + i < count ? turn_ + 1 + i : turn_ + 1 + i - count;
    c = candidate(bank, now, next);
    if (c.kind == Kind::none) continue;
    turn_ = bank;
    return bank;
  }
  return -1;
}

bool BankQueues::admit() {
  if (stuck_) return false;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    Bank& b = banks_[arrivals_[i].bank];
    if (static_cast<int>(b.queue.size()) >= r_.bank_queue) continue;
    b.queue.push_back(arrivals_[i]);
    if (b.first_hit < 0 && b.row == arrivals_[i].row) b.first_hit = static_cast<int>(b.queue.size()) - 1;
    ++queued_;
    arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  stuck_ = true;
  return false;
}

Cycle BankQueues::step(Cycle now, std::vector<Done>& done) {
  if (now == next_refresh_) {
    next_refresh_ += r_.refi;
    refresh_due_ = true;
  }
  Cycle next = kNever;
  bool busy = false, refreshing = false;
  if (refresh_due_) busy = refreshing = refresh_command(now, next);
  if (!refreshing) {
    Candidate first, second;
    const int bank = pick(now, first, next);
    if (bank >= 0) {
      issue(bank, first, now, done);
      busy = true;
      if (r_.split_bus) {
        const int other = pick(now, second, next);
        if (other >= 0 && (first.kind == Kind::read) != (second.kind == Kind::read)) issue(other, second, now, done);
      }
    }
  }
  if (admit()) busy = true;
  return busy ? now + 1 : std::min(next, next_refresh_);
}

ChannelCounts BankQueues::counts(Cycle end) const {
  ChannelCounts c = counts_;
  if (open_ > 0) c.active_cycles += end - open_since_;
  return c;
}

}  // namespace sojourn::dram
