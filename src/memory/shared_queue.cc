// A channel with one read queue: the oldest request whose next command is ready goes first.
//
// Equations and sources: channel.h. Rules of this shape:
//   a request whose row was opened for it leaves the queue and waits, first in line, for its read; until then its bank
//   cannot be precharged; a waiting refresh stops the queue, not those requests; a refresh precharges all banks at
//   once; with split buses a column and a row command may go in one cycle, the column command first.
// Assumptions: an older request may close a row that younger ones could still use (plain FR-FCFS).
#include "memory/shared_queue.h"

#include <algorithm>
#include <limits>

namespace sojourn::dram {
namespace {
constexpr Cycle kNever = std::numeric_limits<Cycle>::max();
}

SharedQueue::SharedQueue(const DramRecord& r)
    : r_(r),
      banks_(static_cast<std::size_t>(r.all_banks())),
      groups_(static_cast<std::size_t>(r.groups())),
      pseudo_(static_cast<std::size_t>(r.pseudo_channels)),
      next_refresh_(r.refi - 1) {
  for (std::size_t b = 0; b < banks_.size(); ++b) {
    banks_[b].group = static_cast<int>(b) / r.banks;
    banks_[b].pseudo = banks_[b].group / r.bank_groups;
  }
  const int act = r.act_cycles - 1, read = r.read_cycles - 1;
  act_to_read_ = r.rcd + act - read;
  act_to_pre_ = r.ras + act;
  act_to_refresh_ = r.rc + act;
  read_to_pre_ = r.rtp + read;
  pre_to_act_ = r.rp - act;
  refresh_to_act_ = r.rfc - act;
}

void SharedQueue::push(Cycle /*now*/, std::int64_t id, const Place& place) {
  Bank& b = banks_[place.bank];
  const int at = static_cast<int>(b.queue.size());
  b.queue.push_back({arrived_++, id, place.row});
  int& first = b.row == place.row ? b.hit : b.miss;
  if (first < 0) first = at;
  waiting_banks_.set(place.bank);
  ++queued_;
}

/// Takes request `i` out of the queue.
SharedQueue::Waiting SharedQueue::take(Bank& b, int i) {
  const Waiting w = b.queue[i];
  b.queue.erase(b.queue.begin() + i);
  --queued_;
  find_first(b);
  if (b.queue.empty()) waiting_banks_.reset(static_cast<int>(&b - banks_.data()));
  return w;
}

void SharedQueue::find_first(Bank& b) {
  b.hit = b.miss = -1;
  const int n = static_cast<int>(b.queue.size());
  for (int i = 0; i < n && (b.hit < 0 || b.miss < 0); ++i) {
    int& first = b.queue[i].row == b.row ? b.hit : b.miss;
    if (first < 0) first = i;
  }
}

Cycle SharedQueue::read_ready(const Bank& b) const {
  return std::max({b.read, groups_[b.group].read, pseudo_[b.pseudo].read, column_bus_});
}
Cycle SharedQueue::act_ready(const Bank& b) const {
  const Pseudo& p = pseudo_[b.pseudo];
  return std::max({b.act, groups_[b.group].act, p.act, p.last_acts[p.oldest_act] + r_.faw, row_bus()});
}
Cycle SharedQueue::pre_ready(const Bank& b) const { return std::max({b.pre, pseudo_[b.pseudo].pre, row_bus()}); }

void SharedQueue::take_bus(bool column, Cycle now, int cycles) {
  (column || !r_.split_bus ? column_bus_ : row_bus_) = now + cycles;
}

void SharedQueue::read(Cycle now, Bank& b, std::int64_t id, std::vector<Done>& done) {
  Pseudo& p = pseudo_[b.pseudo];
  p.read = now + std::max(r_.burst, r_.ccd_s);
  groups_[b.group].read = now + r_.ccd_l;
  b.pre = std::max(b.pre, now + read_to_pre_);
  p.close_all = std::max(p.close_all, now + read_to_pre_);
  take_bus(true, now, r_.read_cycles);
  ++counts_.reads;
  done.push_back({id, now + r_.cl + r_.burst});
}

void SharedQueue::activate(Cycle now, Bank& b) {
  Pseudo& p = pseudo_[b.pseudo];
  b.row = b.queue[b.miss].row;
  b.opener = take(b, b.miss);
  opened_banks_.set(static_cast<int>(&b - banks_.data()));
  b.act = now + r_.rc;
  b.read = now + act_to_read_;
  b.pre = now + act_to_pre_;
  groups_[b.group].act = now + r_.rrd_l;
  p.act = std::max(p.act, now + r_.rrd_s);
  p.last_acts[p.oldest_act] = now;
  p.oldest_act = (p.oldest_act + 1) % 4;
  p.close_all = std::max(p.close_all, now + act_to_pre_);
  p.refresh = std::max(p.refresh, now + act_to_refresh_);
  ++p.openers;
  if (p.open++ == 0) p.open_since = now;
  take_bus(false, now, r_.act_cycles);
  ++counts_.activates;
}

void SharedQueue::precharge(Cycle now, Bank& b) {
  Pseudo& p = pseudo_[b.pseudo];
  b.row = -1;
  find_first(b);
  b.act = std::max(b.act, now + pre_to_act_);
  p.pre = now + std::max(r_.ppd, 1);
  p.close_all = std::max(p.close_all, now + r_.ppd);
  p.refresh = std::max(p.refresh, now + r_.rp);
  if (--p.open == 0) counts_.active_cycles += now - p.open_since;
  take_bus(false, now, 1);
  ++counts_.precharges;
}

/// The row command of the refresh at the head of the line, if its time has come.
bool SharedQueue::refresh_command(Cycle now, Cycle& next) {
  const std::size_t which = due_.front();
  Pseudo& p = pseudo_[which];
  if (p.open > 0) {
    if (p.openers > 0) return false;  // their reads come first
    const Cycle ready = std::max({p.close_all, p.pre, row_bus()});
    if (ready > now) {
      next = std::min(next, ready);
      return false;
    }
    for (Bank& b : banks_) {
      if (b.pseudo != static_cast<int>(which) || b.row < 0) continue;
      b.row = -1;
      find_first(b);
    }
    p.act = std::max(p.act, now + pre_to_act_);
    p.pre = now + std::max(r_.ppd, 1);
    p.refresh = std::max(p.refresh, now + r_.rp);
    counts_.active_cycles += now - p.open_since;
    p.open = 0;
    take_bus(false, now, 1);
    return true;
  }
  const Cycle ready = std::max(p.refresh, row_bus());
  if (ready > now) {
    next = std::min(next, ready);
    return false;
  }
  p.act = std::max(p.act, now + refresh_to_act_);
  p.close_all = std::max(p.close_all, now + r_.rfc);
  take_bus(false, now, 1);
  ++counts_.refreshes;
  due_.erase(due_.begin());
  return true;
}

/// The bank whose opener is to be read next: the oldest that is ready, or -1.
int SharedQueue::pick_opened(Cycle now, Cycle& next) const {
  int best = -1;
  opened_banks_.each([&](int i) {
    const Bank& b = banks_[i];
    const Cycle ready = read_ready(b);
    if (ready > now)
      next = std::min(next, ready);
    else if (best < 0 || b.opener.arrived < banks_[best].opener.arrived)
      best = i;
  });
  return best;
}

/// The banks of the oldest queued requests with a ready column and a ready row command.
SharedQueue::Pick SharedQueue::pick_queued(Cycle now, Cycle& next, bool column, bool row) const {
  Pick pick;
  std::int64_t oldest_column = kNever, oldest_row = kNever;
  waiting_banks_.each([&](int i) {
    const Bank& b = banks_[i];
    if (column && b.hit >= 0 && b.queue[b.hit].arrived < oldest_column) {
      const Cycle ready = read_ready(b);
      if (ready > now) {
        next = std::min(next, ready);
      } else {
        pick.column = i;
        oldest_column = b.queue[b.hit].arrived;
      }
    }
    if (row && b.miss >= 0 && b.queue[b.miss].arrived < oldest_row && !(b.row >= 0 && opened_banks_.has(i))) {
      const Cycle ready = b.row < 0 ? act_ready(b) : pre_ready(b);
      if (ready > now) {
        next = std::min(next, ready);
      } else {
        pick.row = i;
        oldest_row = b.queue[b.miss].arrived;
      }
    }
  });
  if (!r_.split_bus && pick.column >= 0 && pick.row >= 0) (oldest_column < oldest_row ? pick.row : pick.column) = -1;
  return pick;
}

Cycle SharedQueue::step(Cycle now, std::vector<Done>& done) {
  if (now == next_refresh_) {
    next_refresh_ += r_.refi;
    for (std::size_t p = 0; p < pseudo_.size(); ++p) due_.push_back(p);
  }
  Cycle next = kNever;
  bool column_done = false, row_done = false;
  if (const int i = pick_opened(now, next); i >= 0) {
    Bank& b = banks_[i];
    read(now, b, b.opener.id, done);
    opened_banks_.reset(i);
    --pseudo_[b.pseudo].openers;
    column_done = true;
  }
  const bool bus_taken = column_done && !r_.split_bus;
  if (!bus_taken && !due_.empty()) {
    row_done = refresh_command(now, next);
  } else if (!bus_taken) {
    Pick pick = pick_queued(now, next, !column_done, true);
    if (pick.column >= 0) {
      Bank& b = banks_[pick.column];
      read(now, b, take(b, b.hit).id, done);
      column_done = true;
      // The read keeps its own bank open for RTP: look again for a row command.
      if (pick.row == pick.column) pick.row = pick_queued(now, next, false, true).row;
    }
    if (pick.row >= 0) {
      Bank& b = banks_[pick.row];
      if (b.row < 0)
        activate(now, b);
      else
        precharge(now, b);
      row_done = true;
    }
  }
  return column_done || row_done ? now + 1 : std::min(next, next_refresh_);
}

ChannelCounts SharedQueue::counts(Cycle end) const {
  ChannelCounts c = counts_;
  for (const Pseudo& p : pseudo_)
    if (p.open > 0) c.active_cycles += end - p.open_since;
  return c;
}

}  // namespace sojourn::dram
