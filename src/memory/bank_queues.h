// The state of a channel with a queue a bank; the model is in bank_queues.cc.
#pragma once
#include "memory/channel.h"

namespace sojourn::dram {

class BankQueues final : public Channel {
 public:
  explicit BankQueues(const DramRecord& record);
  [[nodiscard]] bool room() const override { return static_cast<int>(arrivals_.size()) < r_.queue; }
  void push(Cycle now, std::int64_t id, const Place& place) override;
  Cycle step(Cycle now, std::vector<Done>& done) override;
  [[nodiscard]] ChannelCounts counts(Cycle end) const override;

 private:
  struct Waiting {
    std::int64_t id = 0, row = 0;
    int bank = 0;
  };
  enum class Kind { none, read, activate, precharge };
  struct Candidate {
    Kind kind = Kind::none;
    int index = 0;  ///< in the bank's queue
  };
  struct Bank {
    std::int64_t row = -1;
    int hits = 0;                                   ///< reads since the row was opened
    Cycle act = 0, read = 0, pre = 0, refresh = 0;  ///< earliest cycles
    std::vector<Waiting> queue;
    int first_hit = -1;  ///< first of the queue that wants the open row
  };

  struct Group {
    Cycle act = 0, read = 0;
  };

  [[nodiscard]] Candidate candidate(int bank, Cycle now, Cycle& next) const;
  void find_hit(Bank& b) const;
  void issue(int bank, const Candidate& c, Cycle now, std::vector<Done>& done);
  void close(int bank, Cycle now);
  bool refresh_command(Cycle now, Cycle& next);
  int pick(Cycle now, Candidate& c, Cycle& next);
  bool admit();

  DramRecord r_;
  std::vector<Bank> banks_;
  std::vector<Group> groups_;
  std::vector<Waiting> arrivals_;  ///< in order
  Cycle last_acts_[4] = {-1000000, -1000000, -1000000, -1000000};
  int oldest_act_ = 0, turn_ = 0, open_ = 0, queued_ = 0;
  bool refresh_due_ = false;
  bool stuck_ = false;  ///< no arrival can go on until a read frees a place
  Cycle act_ = 0, read_ = 0;
  Cycle next_refresh_ = 0, open_since_ = 0;
  ChannelCounts counts_;
};

}  // namespace sojourn::dram
