// Closed forms of the DRAM channel model: latencies from CL and burst, and the caps of refresh and of four activates.
#include <doctest/doctest.h>

#include "memory/family.h"
#include "memory/traffic.h"

using namespace sojourn::dram;

namespace {

/// One HBM2 pseudo-channel at 2.0 Gb/s; refresh so rare that it cannot be seen.
DramRecord hbm2() {
  DramRecord r;
  r.tck_ns = 1;
  r.cl = r.rcd = r.rp = 14;
  r.ras = 34;
  r.rc = 48;
  r.burst = r.ccd_s = 2;
  r.ccd_l = r.rrd_s = r.rrd_l = 4;
  r.faw = 15;
  r.rfc = 160;
  r.refi = 100'000'000;
  r.bank_groups = r.banks = 4;
  r.page_bytes = 1024;
  r.transaction_bytes = 64;
  r.capacity = std::int64_t{1} << 28;
  r.mapping = "page_contiguous";
  apply_family(r, Family::hbm2);
  return r;
}

Traffic idle(Pattern pattern, std::int64_t requests) {
  Traffic t;
  t.pattern = pattern;
  t.requests = requests;
  return t;
}

}  // namespace

TEST_CASE("an idle row hit takes CL + burst, the first read of a closed bank RCD and an activate's second cycle more") {
  const DramRecord r = hbm2();
  const Outcome first = run(r, idle(Pattern::idle_rowhit, 1)), two = run(r, idle(Pattern::idle_rowhit, 2));
  CHECK(first.latency_ns == doctest::Approx(r.rcd + 1 + r.cl + r.burst));
  CHECK(2 * two.latency_ns - first.latency_ns == doctest::Approx(r.row_hit_ns()));
}

TEST_CASE("bank queues add the cycle that moves a request from the transaction queue to its bank") {
  DramRecord r = hbm2();
  r.scheduler = Scheduler::bank_queues;
  r.bank_queue = 8;
  r.mapping = "ro-ra-bg-ba-ch-co";
  const Outcome first = run(r, idle(Pattern::idle_rowhit, 1)), two = run(r, idle(Pattern::idle_rowhit, 2));
  CHECK(first.latency_ns == doctest::Approx(1 + r.rcd + r.cl + r.burst));
  CHECK(2 * two.latency_ns - first.latency_ns == doctest::Approx(1 + r.row_hit_ns()));
}

TEST_CASE("one stream in lock step with refresh reaches at most 1 - RFC / REFI of the peak, and nearly that") {
  DramRecord r = hbm2();
  r.refi = 3900;
  r.mapping = "bankgroup_interleaved_xor";
  Traffic t;
  t.bytes_per_stream = 1 << 24;
  const double seen = run(r, t).efficiency;
  CHECK(seen < r.refresh_cap());
  CHECK(seen > r.refresh_cap() - 0.03);
}

TEST_CASE("four activates per FAW cap random reads, and enough banks reach the cap") {
  DramRecord r = hbm2();
  r.faw = 60;
  const double cap = r.activate_cap();
  const Outcome o = run(r, idle(Pattern::random64, 20000));
  CHECK(o.efficiency <= cap * 1.001);  // the last window is not waited for
  CHECK(o.efficiency > 0.97 * cap);
}

TEST_CASE("reads of one bank group are CCD_L apart") {
  DramRecord r = hbm2();
  Traffic t;
  t.bytes_per_stream = 16 * 64;  // one page
  const Outcome o = run(r, t);
  CHECK(o.cycles == r.rcd + 1 + 15 * r.ccd_l + r.cl + r.burst);
}

TEST_CASE("energy of a read is VDD times the read current over standby, for the burst") {
  const DramRecord r = hbm2();
  const double chips = 8.0 * r.transaction_bytes / (2 * r.burst) / 128;
  CHECK(energy_of(r).read == doctest::Approx(1.2 * (390 - 55) * chips * 2));
  Traffic t;
  t.bytes_per_stream = 1 << 16;
  CHECK(run(r, t).read == doctest::Approx(energy_of(r).read / 64));
}
