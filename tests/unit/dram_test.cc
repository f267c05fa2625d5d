// Address mappings, record checks and determinism of the DRAM model.
#include <doctest/doctest.h>

#include <set>
#include <tuple>

#include "memory/family.h"
#include "memory/traffic.h"

using namespace sojourn;
using namespace sojourn::dram;

namespace {

DramRecord small(const std::string& mapping, int channels = 2) {
  DramRecord r;
  r.cl = r.rcd = r.rp = 10;
  r.ras = 24;
  r.rc = 34;
  r.burst = r.ccd_s = r.ccd_l = r.rrd_s = r.rrd_l = 4;
  r.faw = 16;
  r.rfc = 100;
  r.refi = 3000;
  r.bank_groups = 4;
  r.banks = 2;
  r.page_bytes = 1024;
  r.transaction_bytes = 32;
  r.channels = channels;
  r.interleave_bytes = 256;
  r.capacity = 1 << 20;
  r.mapping = mapping;
  apply_family(r, Family::hbm2);
  return r;
}

}  // namespace

TEST_CASE("every mapping puts as many transactions into a row of a bank as a page holds, whatever the order") {
  for (const char* mapping :
       {"page_contiguous", "bankgroup_interleaved_xor", "ro-ra-bg-ba-ch-co", "ro-ra-ba-co-bg-ch"}) {
    for (const int pseudo : {1, 2}) {
      DramRecord r = small(mapping);
      if (std::string(mapping).substr(0, 2) != "ro") r.pseudo_channels = pseudo;
      const AddressMap map(r);
      std::multiset<std::tuple<int, int, std::int64_t>> rows;
      for (std::int64_t at = 0; at < r.capacity; at += r.transaction_bytes) {
        const Place p = map.place(at);
        REQUIRE(p.channel < r.channels);
        REQUIRE(p.bank < r.all_banks());
        rows.insert({p.channel, p.bank, p.row});
      }
      CAPTURE(mapping);
      for (const auto& row : rows) REQUIRE(rows.count(row) == 32);
    }
  }
}

TEST_CASE("strides change the field they name, and no other") {
  const AddressMap map(small("page_contiguous"));
  const Place a = map.place(0), row = map.place(map.row_stride()), bank = map.place(map.bank_stride());
  CHECK(row.row == a.row + 1);
  CHECK(row.bank == a.bank);
  CHECK(bank.bank == a.bank + 1);
  CHECK(map.place(map.group_stride()).bank == a.bank + 2);
  CHECK(map.place(256).channel == 1);
}

TEST_CASE("a record that cannot run is told what is wrong, all of it at once") {
  DramRecord r = small("ro-bg-xx");
  r.page_bytes = 1000;
  r.refi = 50;
  Diagnostics problems;
  check_record(r, {"mine.toml", 3, 1}, problems);
  CHECK(problems.items().size() == 3);
}

TEST_CASE("the same seed gives the same run, and streams of one bank are slower than streams of two bank groups") {
  const DramRecord r = small("page_contiguous", 1);
  Traffic t;
  t.pattern = Pattern::random64;
  t.requests = 2000;
  CHECK(run(r, t).cycles == run(r, t).cycles);
  Traffic s;
  s.streams = 2;
  s.bytes_per_stream = 1 << 16;
  s.bases = Bases::aligned;
  const double worst = run(r, s).efficiency;
  s.bases = Bases::diff_bank_group;
  CHECK(run(r, s).efficiency > worst);
}
