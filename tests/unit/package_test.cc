// Packages: Table 1's figures exactly, routes of every topology, visible banks, and what bad files are told.
#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "package/fits.h"
#include "package/load.h"

using namespace sojourn;

namespace {

const std::vector<std::string> kDirs{std::string(SOJOURN_SOURCE_DIR) + "/packages"};

Package preset(const std::string& name) {
  Result<Package> p = load_package(name, kDirs);
  if (!p) FAIL(p.error().diagnostics.text());
  return *p;
}

Package parsed(const std::string& text) {
  Result<Package> p = parse_package(text, "p.toml");
  if (!p) FAIL(p.error().diagnostics.text());
  return *p;
}

struct Totals {
  Bytes capacity = 0;
  std::uint64_t bandwidth = 0;
  int banks = 0;
};
Totals totals(const Package& p, Tier tier) {
  Totals out;
  for (const Bank& b : p.banks) {
    if (b.tier != tier) continue;
    out.capacity += b.capacity;
    out.bandwidth += b.bandwidth.per_second();
    ++out.banks;
  }
  return out;
}

/// The names of the links of a route, without injection and ejection.
std::string hops(const Package& p, int a, int b) {
  std::string out;
  for (const int u : p.route_chiplets(a, b)) {
    const Link& link = p.links[static_cast<size_t>(u)];
    if (link.cls == LinkClass::d2d) out += (out.empty() ? "" : " ") + link.name;
  }
  return out;
}

int d2d_hops(const Package& p, int a, int b) {
  int n = 0;
  for (const int u : p.route_chiplets(a, b)) n += p.links[static_cast<size_t>(u)].cls == LinkClass::d2d;
  return n;
}

void check_every_route_joins_its_ends(const Package& p) {
  for (size_t a = 0; a < p.chiplets.size(); ++a) {
    for (size_t b = 0; b < p.chiplets.size(); ++b) {
      int at = p.chiplets[a].node;
      std::set<int> once;
      for (const int u : p.route_chiplets(static_cast<int>(a), static_cast<int>(b))) {
        REQUIRE(p.links[static_cast<size_t>(u)].from == at);
        at = p.links[static_cast<size_t>(u)].to;
        CHECK(once.insert(u).second);
      }
      REQUIRE(at == p.chiplets[b].node);
    }
  }
}

const std::string kRest = R"([chiplet]
cores = 4
clock = "1 GHz"
[noc]
energy = "0.1 pJ/bit"
[d2d]
bandwidth = "64 GB/s"
energy = "0.5 pJ/bit"
distance = "10 mm"
overhead = "2 ns"
)";
const std::string kMemory = R"([[memory]]
tier = "sram"
at = "compute"
banks = 2
capacity = "4 MiB"
bandwidth = "100 GB/s"
latency = "2 ns"
energy = "1.25 pJ/B"
)";
const std::string kRow = "name = \"row\"\n[topology]\nkind = \"mesh\"\nwidth = 3\nheight = 1\n";

std::string topology(const std::string& lines) { return "name = \"t\"\n[topology]\n" + lines + kRest + kMemory; }

}  // namespace

TEST_CASE("hcrmap-table1 has exactly the compute and links of Table 1") {
  const Package p = preset("hcrmap-table1");
  CHECK(p.name == "hcrmap-table1");
  CHECK(p.compute_count == 16);
  CHECK(p.chiplets.size() == 20);
  int cores = 0;
  for (const Chiplet& c : p.chiplets) cores += c.cores;
  CHECK(cores == 256);
  CHECK(p.clock_hz == 1e9);
  CHECK(p.routing == "xy");
  CHECK(p.groups == 4);
  CHECK(p.chiplet_rate(3).per_second() == 4'096'000'000'000);
  int d2d = 0, noc = 0;
  for (const Link& link : p.links) {
    CHECK(link.bandwidth.per_second() == 256'000'000'000);
    if (link.cls == LinkClass::noc) {
      ++noc;
      CHECK(link.latency == 3000);
      CHECK(link.energy_per_byte == 800);
    } else {
      ++d2d;
      CHECK(link.latency == 4067);  // 2 cycles, 2 ns, 10 mm at 1.5e8 m/s
      CHECK(link.energy_per_byte == 4000);
    }
  }
  CHECK(noc == 32);
  CHECK(d2d == 48 + 16);
  CHECK(p.source_sha256.size() == 64);
  check_every_route_joins_its_ends(p);
}

TEST_CASE("hcrmap-table1 gives each group Table 1's SRAM and HBM and the package its DDR5") {
  const Package p = preset("hcrmap-table1");
  for (int g = 0; g < 4; ++g) {
    Bytes sram = 0, hbm = 0;
    std::uint64_t sram_rate = 0, hbm_rate = 0;
    int sram_banks = 0, hbm_banks = 0;
    for (const Bank& b : p.banks) {
      if (p.chiplets[static_cast<size_t>(b.owner)].group != g || b.tier == Tier::dram) continue;
      (b.tier == Tier::sram ? sram : hbm) += b.capacity;
      (b.tier == Tier::sram ? sram_rate : hbm_rate) += b.bandwidth.per_second();
      (b.tier == Tier::sram ? sram_banks : hbm_banks)++;
    }
    CHECK(sram == 64 * kMiB);
    CHECK(hbm == 8 * kGiB);
    CHECK(sram_rate == 2'000'000'000'000);
    CHECK(hbm_rate == 460'000'000'000);
    CHECK(sram_banks == 16);
    CHECK(hbm_banks == 32);
  }
  const Totals dram = totals(p, Tier::dram);
  CHECK(dram.capacity == 32 * kGiB);
  CHECK(dram.bandwidth == 409'600'000'000);
  CHECK(dram.banks == 8);
  for (const Bank& b : p.banks)
    CHECK(b.energy_per_byte == (b.tier == Tier::sram ? 1250 : b.tier == Tier::hbm ? 31800 : 160000));
}

TEST_CASE("hcrmap-total gives the whole package Table 1's memory") {
  const Package p = preset("hcrmap-total");
  const Totals sram = totals(p, Tier::sram), hbm = totals(p, Tier::hbm), dram = totals(p, Tier::dram);
  CHECK(sram.capacity == 64 * kMiB);
  CHECK(sram.bandwidth == 2'000'000'000'000);
  CHECK(sram.banks == 16);
  CHECK(hbm.capacity == 8 * kGiB);
  CHECK(hbm.bandwidth == 460'000'000'000);
  CHECK(hbm.banks == 32);
  CHECK(dram.capacity == 32 * kGiB);
  CHECK(dram.bandwidth == 409'600'000'000);
  CHECK(dram.banks == 8);
}

TEST_CASE("the presets' power cap is above everything running at full rate") {
  for (const char* name : {"hcrmap-table1", "hcrmap-total"}) {
    const Package p = preset(name);
    double watts = 0;
    for (const Bank& b : p.banks) watts += static_cast<double>(b.bandwidth.per_second()) * b.energy_per_byte * 1e-15;
    for (const Link& u : p.links) watts += static_cast<double>(u.bandwidth.per_second()) * u.energy_per_byte * 1e-15;
    for (int c = 0; c < p.compute_count; ++c)
      watts += static_cast<double>(p.chiplet_rate(c).per_second()) * p.energy_per_mac * 1e-15;
    CAPTURE(watts);
    CHECK(watts < p.power_cap_w);
    CHECK(watts > p.power_cap_w / 2);
  }
}

TEST_CASE("XY routes go along x first and have the Manhattan number of hops") {
  const Package p = preset("hcrmap-table1");
  for (int a = 0; a < 16; ++a)
    for (int b = 0; b < 16; ++b) {
      CHECK(d2d_hops(p, a, b) == std::abs(a % 4 - b % 4) + std::abs(a / 4 - b / 4));
      CHECK(p.route_chiplets(a, b).size() == (a == b ? 0u : static_cast<size_t>(d2d_hops(p, a, b)) + 2));
    }
  CHECK(hops(p, 0, 6) == "c0->c1 c1->c2 c2->c6");
  CHECK(hops(p, 6, 0) == "c6->c5 c5->c4 c4->c0");
  CHECK(p.links[static_cast<size_t>(p.route_chiplets(0, 6).front())].name == "c0.inject");
  CHECK(p.links[static_cast<size_t>(p.route_chiplets(0, 6).back())].name == "c6.eject");
}

TEST_CASE("an IO chiplet is reached through the nearer of the chiplets it is attached to") {
  const Package p = preset("hcrmap-table1");
  CHECK(hops(p, 16, 0) == "io0->c0");
  CHECK(hops(p, 16, 5) == "io0->c4 c4->c5");
  CHECK(hops(p, 5, 16) == "c5->c4 c4->io0");
  CHECK(hops(p, 16, 17) == "io0->c0 c0->c1 c1->c2 c2->c3 c3->io1");
  CHECK(hops(p, 16, 8) == "io0->c4 c4->c8");
}

TEST_CASE("a chiplet sees its own SRAM and HBM and every DRAM set, nearest first") {
  const Package p = preset("hcrmap-table1");
  for (int c = 0; c < 16; ++c) {
    for (const Tier t : {Tier::sram, Tier::hbm}) {
      REQUIRE(p.visible(t, c).size() == 1);
      CHECK(p.bank_sets[static_cast<size_t>(p.visible(t, c)[0])].owner == c);
      CHECK(p.bank_sets[static_cast<size_t>(p.visible(t, c)[0])].tier == t);
    }
    REQUIRE(p.visible(Tier::dram, c).size() == 4);
    Ps last = -1;
    for (const int s : p.visible(Tier::dram, c)) {
      Ps latency = 0;
      for (const int u : p.route_chiplets(p.bank_sets[static_cast<size_t>(s)].owner, c))
        latency += p.links[static_cast<size_t>(u)].latency;
      CHECK(latency >= last);
      last = latency;
    }
  }
  const auto owner = [&](int c) {
    return p.chiplets[static_cast<size_t>(p.bank_sets[static_cast<size_t>(p.visible(Tier::dram, c)[0])].owner)].name;
  };
  CHECK(owner(0) == "io0");
  CHECK(owner(7) == "io1");
  CHECK(owner(13) == "io2");
  CHECK(owner(10) == "io3");
}

TEST_CASE("bank sets sum the usable bytes and bandwidth of their banks") {
  const Package p = preset("example-custom");
  const BankSet& sram = p.bank_sets[static_cast<size_t>(p.visible(Tier::sram, 0)[0])];
  CHECK(sram.count == 4);
  CHECK(sram.usable == 4 * (8 * kMiB - 512 * kKiB - 64 * kKiB));
  CHECK(sram.bandwidth == 400'000'000'000);
  CHECK(p.visible(Tier::sram, 1).empty());
  for (int b = 0; b < sram.count; ++b) CHECK(p.banks[static_cast<size_t>(sram.first_bank + b)].index == b);
}

TEST_CASE("a torus takes the shorter way round and + on a tie") {
  const Package ring = preset("example-torus");
  CHECK(hops(ring, 0, 3) == "c0->c3");
  CHECK(hops(ring, 3, 0) == "c3->c0");
  CHECK(hops(ring, 0, 2) == "c0->c1 c1->c2");
  CHECK(hops(ring, 2, 0) == "c2->c3 c3->c0");
  CHECK(ring.groups == 2);
  for (const Link& u : ring.links)
    if (u.cls == LinkClass::d2d) CHECK(u.distance_mm == 20);
  const Package grid = parsed(topology("kind = \"torus\"\nwidth = 5\nheight = 4\nfolded = false\n"));
  for (int a = 0; a < 20; ++a)
    for (int b = 0; b < 20; ++b) {
      const int dx = std::abs(a % 5 - b % 5), dy = std::abs(a / 5 - b / 5);
      CHECK(d2d_hops(grid, a, b) == std::min(dx, 5 - dx) + std::min(dy, 4 - dy));
    }
  double longest = 0;
  for (const Link& u : grid.links) longest = std::max(longest, u.distance_mm);
  CHECK(longest == 40);
  check_every_route_joins_its_ends(grid);
}

TEST_CASE("a torus of two by two has one link a direction between neighbours") {
  const Package p = parsed(topology("kind = \"torus\"\nwidth = 2\nheight = 2\n"));
  int d2d = 0;
  for (const Link& u : p.links) d2d += u.cls == LinkClass::d2d;
  CHECK(d2d == 8);
  CHECK(hops(p, 0, 3) == "c0->c1 c1->c3");
}

TEST_CASE("tree routes climb to the common ancestor") {
  const Package p = preset("example-tree");
  CHECK(p.routing == "table");
  CHECK(hops(p, 1, 3) == "c1->c0 c0->c3");
  CHECK(hops(p, 0, 2) == "c0->c2");
  CHECK(hops(p, 4, 2) == "memory->c0 c0->c2");
  const Package deep = parsed(topology("kind = \"tree\"\nchiplets = 7\narity = 2\n"));
  CHECK(hops(deep, 3, 6) == "c3->c1 c1->c0 c0->c2 c2->c6");
  CHECK(deep.height == 3);
  CHECK(deep.chiplets[6].x == 3);
  CHECK(deep.chiplets[6].y == 2);
}

TEST_CASE("table routing minimises latency and may pass through an IO chiplet") {
  const Package p = preset("example-custom");
  CHECK(hops(p, 0, 1) == "c0->hub hub->c1");  // two fast hops beat the slow direct link
  check_every_route_joins_its_ends(p);
  for (const Link& u : p.links) {
    if (u.name == "hub->c1") CHECK(u.bandwidth.per_second() == 32'000'000'000);
    if (u.name == "c1->hub") CHECK(u.bandwidth.per_second() == 64'000'000'000);
    if (u.name == "c0->c1") CHECK(u.latency == 2000 + 20000 + 267);
  }
}

TEST_CASE("table routing on a mesh has the same lengths as XY and lowest link ids on ties") {
  const Package xy = parsed(topology("kind = \"mesh\"\nwidth = 4\nheight = 3\n"));
  const Package table = parsed(topology("kind = \"mesh\"\nwidth = 4\nheight = 3\nrouting = \"table\"\n"));
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 12; ++b) CHECK(d2d_hops(xy, a, b) == d2d_hops(table, a, b));
  CHECK(hops(table, 0, 5) == "c0->c1 c1->c5");
}

TEST_CASE("[[link]] slows one link of a mesh and leaves the others alone") {
  const Package p = parsed(kRow + kRest + kMemory + "[[link]]\nfrom = \"c0\"\nto = \"c1\"\nboth = false\n" +
                           "bandwidth = \"1 GB/s\"\n");
  for (const Link& u : p.links)
    if (u.cls == LinkClass::d2d)
      CHECK(u.bandwidth.per_second() == (u.name == "c0->c1" ? 1'000'000'000 : 64'000'000'000));
}

TEST_CASE("every shipped package loads by name, and the same file loads by path") {
  const auto list = list_packages(kDirs);
  CHECK(list.size() >= 5);
  for (const auto& [name, path] : list) {
    CAPTURE(name);
    Diagnostics warnings;
    const Result<Package> p = load_package(path, {}, &warnings);
    REQUIRE(p);
    CHECK(p->name == name);
    CHECK(warnings.empty());
    check_every_route_joins_its_ends(*p);
  }
}

TEST_CASE("an unknown preset is answered with the nearest and the known ones") {
  const Result<Package> p = load_package("hcrmap-tabel1", kDirs);
  REQUIRE(!p);
  const std::string text = p.error().diagnostics.text();
  CHECK(text.find("did you mean hcrmap-table1?") != std::string::npos);
  CHECK(text.find("example-tree") != std::string::npos);
  CHECK(p.error().exit_code == 2);
  CHECK(!load_package("./no/such/file.toml", kDirs));
}

TEST_CASE("an expert no tier can hold is an error, a masked tier a warning") {
  const Package p = preset("hcrmap-table1");
  CHECK(check_expert_fits(p, 3 * kMiB, "small").empty());
  const Diagnostics masked = check_expert_fits(p, 42 * kMiB, "DSV3");  // a chiplet's SRAM set is 16 MiB
  REQUIRE(masked.items().size() == 1);
  CHECK(!masked.has_errors());
  CHECK(masked.items()[0].key == "memory.sram");
  CHECK(tiers_that_hold(p, 42 * kMiB) == std::array<bool, 3>{false, true, true});
  const Diagnostics none = check_expert_fits(p, 100 * kGiB, "huge");
  CHECK(none.has_errors());
  CHECK(none.text().find("no tier that c0 sees") != std::string::npos);
  CHECK(check_expert_fits(p, 0, "empty").has_errors());
}

TEST_CASE("the parameter records cover every section with a text and a source") {
  std::set<std::string> names;
  for (const Param& p : package_params()) {
    CHECK(names.insert(p.name).second);
    CHECK(!p.text.empty());
    CHECK(!p.source.empty());
  }
  for (const char* name : {"name", "chiplet.cores", "memory.capacity", "link.bandwidth", "topology.mesh.width",
                           "topology.tree.arity", "d2d.overhead", "power.cap"})
    CHECK(names.count(name) == 1);
}

namespace {

/// A good file of 12 + lines with one thing changed, and what must be said about it.
struct Bad {
  std::string title;
  std::string text;
  const char* expected;  ///< in one line of the findings
};

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kRow + kRest + kMemory;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string plus(const std::string& lines) { return kRow + kRest + kMemory + lines; }

}  // namespace

TEST_CASE("bad package files are told where, what and how to mend it") {
  const std::string custom = "name = \"x\"\n[topology]\nkind = \"custom\"\nchiplets = 3\n" + kRest + kMemory;
  const std::vector<Bad> cases{
      {"unit unknown", changed("4 MiB", "4 MiBs"),
       "p.toml:20:12: memory[0].capacity: 4 MiBs: unknown unit; did you mean MiB?"},
      {"unit of another dimension", changed("\"64 GB/s\"", "\"64 GB\""),
       "p.toml:12:13: d2d.bandwidth: 64 GB: wrong unit; expected a bandwidth such as 256 GB/s"},
      {"unit missing", changed("\"2 ns\"\n", "\"2\"\n"), "d2d.overhead: 2: missing unit; expected a time such as 2 ns"},
      {"quotes missing", changed("\"64 GB/s\"", "64"),
       "p.toml:12:13: d2d.bandwidth: missing unit; expected a bandwidth"},
      {"zero bandwidth", changed("\"64 GB/s\"", "\"0 GB/s\""),
       "p.toml:12:13: d2d.bandwidth: 0 B/s: less than the least allowed, 1 MB/s; use a value from"},
      {"negative", changed("\"10 mm\"", "\"-10 mm\""), "p.toml:14:12: d2d.distance: -10 mm: must not be negative"},
      {"not finite", changed("\"10 mm\"", "\"nan mm\""), "p.toml:14:12: d2d.distance: nan mm: not a finite number"},
      {"overflow", changed("4 MiB", "99999999999 PB"), "p.toml:20:12: memory[0].capacity: 99999999999 PB: too large"},
      {"not whole", changed("\"1.25 pJ/B\"", "\"1.2345 fJ/B\""), "not a whole number of fJ/B; the smallest step"},
      {"unknown key", changed("cores = 4", "coers = 4"), "p.toml:7:1: chiplet.coers: unknown key; did you mean cores?"},
      {"missing key", changed("cores = 4\n", ""), "p.toml:6:1: chiplet.cores: missing; add it"},
      {"duplicate key", changed("cores = 4", "cores = 4\ncores = 5"), "p.toml:8:9"},
      {"duplicate section", plus("[noc]\nflit = \"16 B\"\n"), "may be given only once"},
      {"unknown section", plus("[memry]\n"), "p.toml:24:2: memry: unknown key; did you mean memory?"},
      {"missing section", changed("[noc]\nenergy = \"0.1 pJ/bit\"\n", ""),
       "p.toml:1:1: noc: missing; add it: a table [noc]"},
      {"number in quotes", changed("cores = 4", "cores = \"4\""),
       "p.toml:7:9: chiplet.cores: a string where an integer without quotes belongs"},
      {"fraction of a core", changed("cores = 4", "cores = 4.5"),
       "p.toml:7:9: chiplet.cores: a number where an integer"},
      {"topology unknown", changed("\"mesh\"", "\"mehs\""),
       "p.toml:3:8: topology.kind: unknown choice 'mehs'; did you mean mesh? choices: custom, mesh, torus, tree"},
      {"zero chiplets", changed("width = 3", "width = 0"),
       "p.toml:4:9: topology.width: 0: less than the least allowed, 1"},
      {"too many chiplets", changed("width = 3\nheight = 1", "width = 1000\nheight = 1000"),
       "p.toml:2:1: topology: more than 1024 chiplets; use a smaller grid"},
      {"key of another topology", changed("width = 3", "width = 3\narity = 2"),
       "p.toml:5:1: topology.arity: unknown key"},
      {"xy on a tree", "name = \"x\"\n[topology]\nkind = \"tree\"\nchiplets = 3\nrouting = \"xy\"\n" + kRest + kMemory,
       "p.toml:5:11: topology.routing: xy routing has no meaning on a tree; use routing = \"table\""},
      {"no links", custom, "link: c1, c2 cannot be reached from c0: no link c0->c1 or the like; add [[link]]"},
      {"one-way link",
       custom + "[[link]]\nfrom = \"c0\"\nto = \"c1\"\n[[link]]\nfrom = \"c1\"\nto = \"c2\"\nboth = false\n",
       "p.toml:2:1: link: c2 cannot reach c0: no link c2->c1 or the like; add [[link]] with from = \"c2\" and to = "
       "\"c1\""},
      {"link to an unknown chiplet", plus("[[link]]\nfrom = \"c0\"\nto = \"c7\"\n"),
       "p.toml:26:6: link[0].to: unknown chiplet 'c7'; chiplets: c0 to c2"},
      {"link to itself", plus("[[link]]\nfrom = \"c0\"\nto = \"c0\"\n"),
       "p.toml:26:6: link[0].to: a link from c0 to itself"},
      {"link given twice", plus("[[link]]\nfrom = \"c0\"\nto = \"c1\"\n[[link]]\nfrom = \"c1\"\nto = \"c0\"\n"),
       "p.toml:28:8: link[1].from: link c1->c0 is given twice"},
      {"new link under xy", plus("[[link]]\nfrom = \"c0\"\nto = \"c2\"\n"),
       "p.toml:25:8: link[0].from: xy routing never takes the new link c0->c2; use routing = \"table\""},
      {"tier unknown", changed("\"sram\"", "\"stram\""),
       "p.toml:17:8: memory[0].tier: unknown choice 'stram'; did you mean sram?"},
      {"no banks", changed("banks = 2", "banks = 0"),
       "p.toml:19:9: memory[0].banks: 0: less than the least allowed, 1"},
      {"no memory at all", kRow + kRest, "p.toml:1:1: memory: missing; add it: tables [[memory]]"},
      {"memory on no chiplet", changed("at = \"compute\"", "at = \"io\""),
       "p.toml:18:6: memory[0].at: there is no IO chiplet"},
      {"memory on an unknown chiplet", changed("at = \"compute\"", "at = [\"c0\", \"c9\"]"),
       "p.toml:18:6: memory[0].at: unknown chiplet 'c9'"},
      {"a chiplet without memory", changed("at = \"compute\"", "at = [\"c0\", \"c2\"]"),
       "memory: c1 sees no memory bank; add"},
      {"reservation too large", plus("reserve_metadata = \"5 MiB\"\n"),
       "p.toml:24:20: memory[0].reserve_metadata: reservations of 5 MiB exceed the bank's 4 MiB; lower"},
      {"tier given twice", plus(kMemory), "memory[1].at: c0 has sram banks already; give each tier"},
      {"absurd bank", changed("4 MiB", "4 PiB"), "p.toml:20:12: memory[0].capacity: 4 PiB: more than the most allowed"},
      {"groups miss chiplets", plus("[groups]\nlist = [[0], [2]]\n"),
       "p.toml:25:8: groups.list: in no group: c1; list every"},
      {"chiplet in two groups", plus("[groups]\nlist = [[0, 1], [1, 2]]\n"),
       "p.toml:25:8: groups.list: chiplet 1 is in two groups"},
      {"group of unknown chiplet", plus("[groups]\nlist = [[0, 1, 2, 3]]\n"),
       "groups.list: no compute chiplet 3; chiplets are 0 to 2"},
      {"half a block size", plus("[groups]\nwidth = 2\n"),
       "p.toml:24:1: groups.height: a block needs a width and a height"},
      {"IO in no group", plus("[[io]]\nname = \"io0\"\ngroup = 3\nattach = [\"c0\"]\n"),
       "p.toml:26:9: io[0].group: no group 3; groups are 0 to 0"},
      {"IO attached to nothing", plus("[[io]]\nname = \"io0\"\nattach = []\n"),
       "p.toml:26:10: io[0].attach: attached to nothing"},
      {"IO name taken", plus("[[io]]\nname = \"c1\"\nattach = [\"c0\"]\n"), "p.toml:25:8: io[0].name: 'c1' is taken"},
      {"not TOML", changed("\"4 MiB\"", "4 MiB"), "p.toml:20:14: parsing key-value pair"},
      {"not UTF-8", changed("\"row\"", "\"r\xffw\""), "p.toml:1:10: not UTF-8 text; save the file as UTF-8"},
      {"nested too deeply", plus("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1\n"), "nested too deeply"},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.title);
    const Result<Package> p = parse_package(bad.text, "p.toml");
    REQUIRE(!p);
    CHECK(p.error().exit_code == 2);
    const std::string text = p.error().diagnostics.text();
    CAPTURE(text);
    CHECK(text.find(bad.expected) != std::string::npos);
    for (const Diagnostic& d : p.error().diagnostics.items()) {
      CHECK(d.where.line > 0);
      CHECK(d.where.column > 0);
      CHECK(!d.remedy.empty());
    }
  }
}

TEST_CASE("all errors of a package file come in one pass and in file order") {
  std::string text = changed("cores = 4", "cores = 0");
  text.replace(text.find("64 GB/s"), 7, "64 GBs");
  text.replace(text.find("\"compute\""), 9, "\"c8\"");
  text += "[[link]]\nfrom = \"c0\"\nto = \"nowhere\"\nspeed = 3\n";
  const Result<Package> p = parse_package(text, "p.toml");
  REQUIRE(!p);
  const auto& items = p.error().diagnostics.items();
  CAPTURE(p.error().diagnostics.text());
  CHECK(items.size() == 5);
  for (size_t i = 1; i < items.size(); ++i) CHECK(items[i - 1].where.line <= items[i].where.line);
}

TEST_CASE("a package beyond the route limit is refused") {
  PackageLimits limits;
  limits.route_entries = 10;
  const Result<Package> p = parse_package(kRow + kRest + kMemory, "p.toml", nullptr, limits);
  REQUIRE(!p);
  CHECK(p.error().diagnostics.text().find("routes are too long") != std::string::npos);
}
