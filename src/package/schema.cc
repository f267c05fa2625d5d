// The keys of a package file as parameter records: the loader checks with them and `sojourn describe` prints them.
#include "package/load.h"

namespace sojourn {
namespace {

constexpr double kMostBank = 1024.0 * kGiB, kMostChunk = kGiB;  // bytes
constexpr double kLeastRate = 1e6, kMostRate = 1e15;            // B/s; Rate arithmetic stays within 63 bits

Param whole(const char* name, Unit unit, std::int64_t value, double min, double max, const char* text,
            const char* source, bool required = false) {
  return {name, unit, value, min, max, {}, text, source, required};
}
Param real(const char* name, Unit unit, double value, double min, double max, const char* text, const char* source,
           bool required = false) {
  return {name, unit, value, min, max, {}, text, source, required};
}
Param word(const char* name, std::vector<std::string> choices, const char* value, const char* text, const char* source,
           bool required = false) {
  return {name, Unit::none, std::string(value), -1e300, 1e300, std::move(choices), text, source, required};
}

std::vector<PackageSection> make_sections() {
  TopologyRegistry topologies("topology");
  register_all_topologies(topologies);
  const char* kTable1 = "HCRMap Table 1";
  const char* kOurs = "ours";
  const auto link = [&](bool required) {
    return std::vector<Param>{
        whole("bandwidth", Unit::bytes_per_second, 0, kLeastRate, kMostRate, "B_u, one direction", kTable1, required),
        whole("energy", Unit::fj_per_byte, 0, 0, 1e9, "epsilon_u", "HCRMap 4.2; value ours", required),
        real("distance", Unit::millimetres, 0, 0, 1e4, "delta_u, between neighbours", "HCRMap 4.2; value ours",
             required),
        real("signal_speed", Unit::metres_per_second, 1.5e8, 1e6, 3e8, "v_u", "HCRMap 4.2; value ours"),
        whole("router_cycles", Unit::none, 2, 0, 1000, "cycles of the router a hop enters", kTable1),
        whole("overhead", Unit::picoseconds, 0, 0, 1e9, "fixed time of the link itself (PHY, adapter)", kOurs,
              required),
    };
  };
  std::vector<Param> one_link{
      word("from", {}, "", "chiplet name: c0, c1, ... or an [[io]] name", kOurs, true),
      word("to", {}, "", "chiplet name", kOurs, true),
      {"both", Unit::none, true, 0, 1, {}, "both directions", kOurs},
  };
  for (Param& p : link(false)) {
    p.text += "; default: [d2d]'s, or the link's own when it exists already";
    one_link.push_back(std::move(p));
  }
  return {
      {"",
       "the package",
       false,
       {word("name", {}, "", "name of the package", kOurs, true), word("text", {}, "", "one line about it", kOurs)}},
      {"topology",
       "how compute chiplets are joined; further keys are the topology's own",
       false,
       {word("kind", topologies.names(), "mesh", "registered topology", kTable1, true),
        word("routing", {"auto", "xy", "table"}, "auto",
             "xy: dimension order; table: least latency, then hops, then lowest link; auto: xy where it has meaning",
             kTable1)}},
      {"chiplet",
       "every compute chiplet",
       false,
       {whole("cores", Unit::cores, 16, 1, 4096, "N_c^core", kTable1, true),
        real("clock", Unit::hertz, 1e9, 1e6, 2e10, "clock of cores and routers", kTable1, true),
        whole("macs_per_cycle", Unit::none, 256, 1, 65536, "multiply-accumulates a core and cycle", kOurs),
        whole("tile_tokens", Unit::tokens, 16, 1, 65536, "rows of the legal tile (eta_r)", kOurs),
        whole("energy_per_mac", Unit::femtojoules, 0, 0, 1e9, "epsilon_MAC", kOurs)}},
      {"noc",
       "a chiplet's own network: one injection and one ejection link of ports x flit x clock",
       false,
       {whole("flit", Unit::bytes, 16, 1, 4096, "flit size; 128 bits = 16 B", kTable1),
        whole("ports", Unit::none, 0, 0, 65536, "flits a cycle in each direction; 0 = one a core", kOurs),
        whole("router_cycles", Unit::none, 2, 0, 1000, "router", kTable1),
        whole("link_cycles", Unit::none, 1, 0, 1000, "link", kTable1),
        whole("energy", Unit::fj_per_byte, 0, 0, 1e9, "epsilon_u of the NoC", kOurs, true)}},
      {"d2d", "every link between chiplets", false, link(true)},
      {"groups",
       "chiplet groups: blocks of the grid, or lists; without this section one group",
       false,
       {whole("width", Unit::none, 0, 0, kMaxChiplets, "chiplets of a block along x", "readings: 2"),
        whole("height", Unit::none, 0, 0, kMaxChiplets, "chiplets of a block along y", "readings: 2"),
        word("list", {}, "", "a list of lists of chiplet numbers, instead of width and height", kOurs)}},
      {"io",
       "an IO/memory chiplet",
       true,
       {word("name", {}, "", "unique name", kOurs, true),
        word("attach", {}, "", "list of the chiplets it has a D2D link to, both directions", "readings", true),
        whole("group", Unit::none, 0, 0, kMaxChiplets, "its group", "readings"),
        whole("x", Unit::none, -1, -4096, 4096, "position, for pictures", kOurs),
        whole("y", Unit::none, 0, -4096, 4096, "position, for pictures", kOurs)}},
      {"memory",
       "banks of one tier on some chiplets",
       true,
       {word("tier", {"sram", "hbm", "dram"}, "sram", "t", "HCRMap 4.2", true),
        word("at", {}, "compute", "\"compute\", \"io\", or a list of chiplet names", kOurs, true),
        whole("banks", Unit::none, 1, 1, 4096, "banks on each of these chiplets", kTable1, true),
        whole("capacity", Unit::bytes, 0, 1, kMostBank, "Cap_{t,c,b}, a bank", kTable1, true),
        whole("bandwidth", Unit::bytes_per_second, 0, kLeastRate, kMostRate,
              "BW_{t,c,b}, a bank; its peak when timing is given", kTable1, true),
        whole("latency", Unit::picoseconds, 0, 0, 1e9, "Lat_{t,c,b}", "HCRMap 4.2; value ours", true),
        whole("energy", Unit::fj_per_byte, 0, 0, 1e9, "epsilon_{t,c,b}", kTable1, true),
        whole("reserve_activation", Unit::bytes, 0, 0, kMostBank, "A_{t,c,b}, a bank", "HCRMap (1); value ours"),
        whole("reserve_metadata", Unit::bytes, 0, 0, kMostBank, "M_{t,c,b}, a bank", "HCRMap (1); value ours"),
        word("timing", {}, "",
             "a record of sojourn describe memories: gives latency, and the part of bandwidth that streams get", kOurs),
        whole("timing_streams", Unit::none, 4, 1, 4096, "streams at once that this part is taken for", kOurs)}},
      {"link", "a link of its own kind, or one that changes an existing link", true, one_link},
      {"power",
       "throttling",
       false,
       {real("cap", Unit::watts, 0, 0, 1e7, "power cap of the package; 0 W = none", kOurs),
        real("throttle_floor", Unit::fraction, 0.5, 0.01, 1, "least fraction of throughput under the cap", kOurs)}},
      {"control",
       "fixed costs of control",
       false,
       {whole("gate_energy", Unit::femtojoules, 0, 0, 1e12, "E_g^gate, a token group", "HCRMap 4.5; value ours"),
        whole("migration_energy", Unit::femtojoules, 0, 0, 1e15, "E_m^ctrl, a migration", "HCRMap 4.5; value ours"),
        whole("gate_overhead", Unit::picoseconds, 0, 0, 1e12, "fixed time of a routing decision, a layer", kOurs)}},
      {"stream",
       "how weights and packets are cut up",
       false,
       {whole("chunk", Unit::bytes, 256 * kKiB, 16, kMostChunk, "largest unit that holds a link at once (packet model)",
              kOurs),
        whole("weight_tiles", Unit::none, 8, 1, 65536, "chunks an expert is streamed in; the first gates compute",
              kOurs),
        whole("prefetch_depth", Unit::none, 2, 1, 1024,
              "experts a chiplet's stream buffer of one tier holds (2: double buffering)", kOurs)}},
      {"flit",
       "the package as the flit network sees it (--network flit)",
       false,
       {whole("bytes", Unit::bytes, 256, 1, kMiB, "a flit: what the fastest link carries in a router cycle", kOurs),
        whole("packet", Unit::bytes, 4 * kKiB, 1, 16 * kMiB, "largest packet; messages are cut into packets", kOurs),
        whole("vcs", Unit::none, 4, 1, 32, "virtual channels an input port", kOurs),
        whole("buffer", Unit::none, 0, 0, 1024, "flits a VC; 0 = as many as the link's credit loop has cycles",
              "HCRMap Table 1: 4 flits a router"),
        {"speculative", Unit::none, true, 0, 1, {}, "a head asks for a VC and for the switch in one cycle", kOurs},
        word("arbitration", {"round-robin", "age"}, "round-robin", "who wins a port: in turn, or the oldest packet",
             kOurs),
        word("routing", {"table", "adaptive"}, "table",
             "table: the package's routes; adaptive: minimal, by credits, with the table as escape", kOurs)}},
      {"handover",
       "from package to package, for a model cut into a pipeline",
       false,
       {whole("bandwidth", Unit::bytes_per_second, 64'000'000'000, kLeastRate, kMostRate, "one direction", kOurs),
        whole("latency", Unit::picoseconds, kPsPerUs, 0, 1e12, "fixed time", kOurs)}},
  };
}

}  // namespace

const std::vector<PackageSection>& package_sections() {
  static const std::vector<PackageSection> kSections = make_sections();
  return kSections;
}

std::vector<Param> package_params() {
  std::vector<Param> out;
  for (const PackageSection& section : package_sections()) {
    for (Param p : section.params) {
      if (!section.name.empty()) p.name = section.name + "." + p.name;
      out.push_back(std::move(p));
    }
    if (section.name != "topology") continue;
    TopologyRegistry topologies("topology");
    register_all_topologies(topologies);
    for (const auto& [name, entry] : topologies.entries()) {
      for (Param p : entry.info.params) {
        p.name = "topology." + name + "." + p.name;
        out.push_back(std::move(p));
      }
    }
  }
  return out;
}

}  // namespace sojourn
