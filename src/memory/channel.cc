// Makes the channel that a record's scheduler asks for. Model: shared_queue.cc and bank_queues.cc.
#include "memory/channel.h"

#include "memory/bank_queues.h"
#include "memory/shared_queue.h"

namespace sojourn::dram {

std::unique_ptr<Channel> make_channel(const DramRecord& record) {
  if (record.scheduler == Scheduler::bank_queues) return std::make_unique<BankQueues>(record);
  return std::make_unique<SharedQueue>(record);
}

}  // namespace sojourn::dram
