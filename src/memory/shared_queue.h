// The state of a channel with one shared read queue; the model is in shared_queue.cc.
#pragma once
#include <bit>

#include "memory/channel.h"

namespace sojourn::dram {

class SharedQueue final : public Channel {
 public:
  explicit SharedQueue(const DramRecord& record);
  [[nodiscard]] bool room() const override { return queued_ < r_.queue; }
  void push(Cycle now, std::int64_t id, const Place& place) override;
  Cycle step(Cycle now, std::vector<Done>& done) override;
  [[nodiscard]] ChannelCounts counts(Cycle end) const override;

 private:
  struct Waiting {
    std::int64_t arrived = 0;  ///< counts up
    std::int64_t id = 0, row = 0;
  };
  struct Bank {
    std::int64_t row = -1;             ///< -1: precharged
    Cycle act = 0, read = 0, pre = 0;  ///< earliest cycles
    int group = 0, pseudo = 0;
    int hit = -1, miss = -1;     ///< first of the queue that wants the open row, and another
    std::vector<Waiting> queue;  ///< in order of arrival
    Waiting opener;              ///< the row was opened for it; until it is read the bank is in opened_banks_
  };
  /// A set of banks.
  struct Set {
    std::uint64_t words[2] = {};
    void set(int i) { words[i >> 6] |= std::uint64_t{1} << (i & 63); }
    void reset(int i) { words[i >> 6] &= ~(std::uint64_t{1} << (i & 63)); }
    [[nodiscard]] bool has(int i) const { return (words[i >> 6] >> (i & 63) & 1) != 0; }
    template <class F>
    void each(F f) const {
      for (int w = 0; w < 2; ++w)
        for (std::uint64_t left = words[w]; left != 0; left &= left - 1) f(w * 64 + std::countr_zero(left));
    }
  };
  struct Group {
    Cycle act = 0, read = 0;
  };
  struct Pseudo {
    Cycle act = 0, read = 0, pre = 0, close_all = 0, refresh = 0;
    Cycle last_acts[4] = {-1000000, -1000000, -1000000, -1000000};
    int oldest_act = 0;
    int open = 0, openers = 0;
    Cycle open_since = 0;
  };
  struct Pick {
    int column = -1, row = -1;
  };

  [[nodiscard]] Cycle row_bus() const { return r_.split_bus ? row_bus_ : column_bus_; }
  [[nodiscard]] Cycle read_ready(const Bank& b) const;
  [[nodiscard]] Cycle act_ready(const Bank& b) const;
  [[nodiscard]] Cycle pre_ready(const Bank& b) const;
  void take_bus(bool column, Cycle now, int cycles);
  void read(Cycle now, Bank& b, std::int64_t id, std::vector<Done>& done);
  void activate(Cycle now, Bank& b);
  void precharge(Cycle now, Bank& b);
  bool refresh_command(Cycle now, Cycle& next);
  [[nodiscard]] int pick_opened(Cycle now, Cycle& next) const;
  [[nodiscard]] Pick pick_queued(Cycle now, Cycle& next, bool column, bool row) const;
  Waiting take(Bank& b, int i);
  static void find_first(Bank& b);

  DramRecord r_;
  int act_to_read_ = 0, act_to_pre_ = 0, act_to_refresh_ = 0, read_to_pre_ = 0, pre_to_act_ = 0, refresh_to_act_ = 0;
  std::vector<Bank> banks_;
  std::vector<Group> groups_;
  std::vector<Pseudo> pseudo_;
  std::vector<std::size_t> due_;  ///< pseudo-channels with a refresh due, in order
  Set waiting_banks_, opened_banks_;
  int queued_ = 0;
  std::int64_t arrived_ = 0;
  Cycle column_bus_ = 0, row_bus_ = 0, next_refresh_ = 0;
  ChannelCounts counts_;
};

}  // namespace sojourn::dram
