// From TOML to a Package. One pass reads every section and collects findings; the graph is built only from sections
// that were right, so that one mistake does not cause ten findings.
#include "package/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/hash.h"
#include "base/quantity.h"
#include "config/reader.h"
#include "memory/timing.h"
#include "package/routes.h"

namespace sojourn {
namespace {

using Index = std::size_t;

const PackageSection& section(const std::string& name) {
  for (const PackageSection& s : package_sections())
    if (s.name == name) return s;
  assert(false && "no such section");
  return package_sections().front();
}

/// The section's parameters but for `lists`, which have a shape that a Param cannot say.
ParamSet read_section(TableReader& table, const std::string& name, const std::vector<std::string>& lists = {}) {
  ParamSet out;
  for (const Param& p : section(name).params) {
    const bool list = std::find(lists.begin(), lists.end(), p.name) != lists.end();
    out.set(p.name, list ? p.default_value : table.param(p));
  }
  return out;
}

/// A section that may be left out: its parameters, or the defaults.
ParamSet read_optional(TableReader& root, const std::string& name) {
  std::optional<TableReader> table = root.sub(name);
  if (!table) {
    ParamSet out;
    for (const Param& p : section(name).params) out.set(p.name, p.default_value);
    return out;
  }
  ParamSet out = read_section(*table, name);
  table->finish();
  return out;
}

/// Physical properties of a link before it is one.
struct LinkKind {
  std::int64_t bandwidth = 0, energy = 0, router_cycles = 0, overhead = 0;
  double distance = 0, signal_speed = 1.5e8;
};

LinkKind link_kind(const ParamSet& p) {
  return {p.integer("bandwidth"), p.integer("energy"),  p.integer("router_cycles"),
          p.integer("overhead"),  p.number("distance"), p.number("signal_speed")};
}

class Loader {
 public:
  Loader(const ConfigFile& file, const PackageLimits& limits, Diagnostics& problems)
      : limits_(limits), problems_(problems), root_(file.root(problems)), topologies_("topology") {
    register_all_topologies(topologies_);
    package_.source_sha256 = sha256_hex(file.text());
  }

  Package load() {
    read_top();
    read_topology();
    read_chiplet();
    read_io();
    read_links();
    read_groups();
    read_memory();
    read_rest();
    root_.finish();
    if (!problems_.has_errors()) connect();
    return std::move(package_);
  }

 private:
  Ps cycles(std::int64_t n) const { return std::llround(static_cast<double>(n) * 1e12 / package_.clock_hz); }

  void read_top() {
    const ParamSet top = read_section(root_, "");
    package_.name = top.word("name");
    package_.text = top.word("text");
  }

  void read_topology() {
    std::optional<TableReader> table = root_.sub("topology", true);
    if (!table) return;
    const ParamSet own = read_section(*table, "topology");
    topology_where_ = table->where();
    package_.topology = own.word("kind");
    package_.routing = own.word("routing");
    const auto* entry = table->has("kind") ? topologies_.find(package_.topology) : nullptr;
    if (entry == nullptr) return;  // reported; its further keys cannot be judged
    const Index before = problems_.items().size();
    const ParamSet params = table->params(entry->info.params);
    table->finish();
    if (problems_.items().size() != before) return;
    topology_ = entry->factory(params, topology_where_, "topology", problems_);
    if (topology_.positions.empty() || problems_.items().size() != before) return;
    if (!topology_.next_xy && package_.routing == "xy")
      table->error("routing", "xy routing has no meaning on a " + package_.topology, "use routing = \"table\"");
    if (package_.routing == "auto") package_.routing = topology_.next_xy ? "xy" : "table";
    package_.width = topology_.width;
    package_.height = topology_.height;
    package_.compute_count = static_cast<int>(topology_.positions.size());
    if (package_.compute_count > limits_.chiplets) {
      table->error("kind", fmt::format("{} chiplets, more than {}", package_.compute_count, limits_.chiplets),
                   "use a smaller topology");
      return;
    }
    graph_known_ = true;
  }

  void read_chiplet() {
    ParamSet chiplet;
    bool read = false;
    if (std::optional<TableReader> table = root_.sub("chiplet", true)) {
      chiplet = read_section(*table, "chiplet");
      table->finish();
      read = true;
      package_.clock_hz = chiplet.number("clock");
      package_.macs_per_cycle = static_cast<int>(chiplet.integer("macs_per_cycle"));
      package_.tile_tokens = static_cast<int>(chiplet.integer("tile_tokens"));
      package_.energy_per_mac = chiplet.integer("energy_per_mac");
    }
    for (int c = 0; graph_known_ && c < package_.compute_count; ++c) {
      Chiplet out;
      out.name = fmt::format("c{}", c);
      out.node = c;
      out.x = topology_.positions[static_cast<Index>(c)].x;
      out.y = topology_.positions[static_cast<Index>(c)].y;
      out.cores = read ? static_cast<int>(chiplet.integer("cores")) : 0;
      add_chiplet(std::move(out));
    }
    if (std::optional<TableReader> table = root_.sub("noc", true)) {
      const ParamSet noc = read_section(*table, "noc");
      table->finish();
      const std::int64_t ports = noc.integer("ports") != 0 ? noc.integer("ports") : read ? chiplet.integer("cores") : 1;
      noc_.bandwidth = std::llround(package_.clock_hz) * ports * noc.integer("flit");
      noc_.energy = noc.integer("energy");
      noc_.router_cycles = noc.integer("router_cycles") + noc.integer("link_cycles");
    }
  }

  void add_chiplet(Chiplet chiplet) {
    names_.emplace(chiplet.name, static_cast<int>(package_.chiplets.size()));
    package_.chiplets.push_back(std::move(chiplet));
  }

  void read_io() {
    std::vector<TableReader> tables = root_.tables("io");
    const Index chiplets = package_.chiplets.size() + tables.size();
    if (graph_known_ && chiplets > static_cast<Index>(limits_.chiplets)) {
      root_.error("io", fmt::format("{} chiplets with the IO chiplets, more than {}", chiplets, limits_.chiplets),
                  "use fewer");
      return;
    }
    for (TableReader& table : tables) {
      const ParamSet io = read_section(table, "io", {"attach"});
      Chiplet out;
      out.name = io.word("name");
      out.compute = false;
      out.node = static_cast<int>(package_.chiplets.size());
      out.group = static_cast<int>(io.integer("group"));
      out.x = static_cast<int>(io.integer("x"));
      out.y = static_cast<int>(io.integer("y"));
      if (names_.count(out.name) != 0)
        table.error("name", "'" + out.name + "' is taken", "give every chiplet its own name");
      if (table.require("attach")) {
        const std::vector<std::string> names = table.texts("attach");
        if (names.empty()) table.error("attach", "attached to nothing", "list at least one compute chiplet");
        for (const std::string& name : names) {
          const int c = chiplet_named(table, "attach", name);
          if (c < 0) continue;
          if (!package_.chiplets[static_cast<Index>(c)].compute) {
            table.error("attach", name + " is not a compute chiplet", "use [[link]] to join IO chiplets");
          } else {
            attach_.push_back({static_cast<int>(package_.chiplets.size()), c});
          }
        }
      }
      group_spans_.push_back({table.where("group"), table.dotted("group")});
      table.finish();
      if (graph_known_) add_chiplet(std::move(out));
    }
  }

  /// The chiplet of that name; -1 and a finding when there is none, -1 alone when the graph is not known.
  int chiplet_named(TableReader& table, const std::string& key, const std::string& name) {
    if (!graph_known_) return -1;
    if (const auto it = names_.find(name); it != names_.end()) return it->second;
    std::string known = "chiplets: c0 to c" + std::to_string(package_.compute_count - 1);
    for (Index c = static_cast<Index>(package_.compute_count); c < package_.chiplets.size(); ++c)
      known += ", " + package_.chiplets[c].name;
    table.error(key, "unknown chiplet '" + name + "'", known);
    return -1;
  }

  void add_link(int from, int to, LinkClass cls, const LinkKind& kind, std::string name) {
    Link link;
    link.name = std::move(name);
    link.from = from;
    link.to = to;
    link.cls = cls;
    set_kind(link, kind);
    package_.links.push_back(std::move(link));
    kinds_.push_back(kind);
  }
  void set_kind(Link& link, const LinkKind& kind) const {
    link.bandwidth = Rate(static_cast<std::uint64_t>(std::max<std::int64_t>(kind.bandwidth, 1)));
    link.energy_per_byte = kind.energy;
    link.distance_mm = kind.distance;
    link.signal_mps = kind.signal_speed;
    link.overhead = cycles(kind.router_cycles) + kind.overhead;
    link.latency = link.overhead + std::llround(kind.distance * 1e-3 / kind.signal_speed * 1e12);
  }
  void add_d2d(int from, int to, const LinkKind& kind) {
    d2d_[{from, to}] = package_.links.size();
    add_link(router_node(package_, from), router_node(package_, to), LinkClass::d2d, kind,
             package_.chiplets[static_cast<Index>(from)].name + "->" + package_.chiplets[static_cast<Index>(to)].name);
  }

  void read_links() {
    LinkKind d2d;
    if (std::optional<TableReader> table = root_.sub("d2d", true)) {
      d2d = link_kind(read_section(*table, "d2d"));
      table->finish();
    }
    if (graph_known_) {
      const int chiplets = static_cast<int>(package_.chiplets.size());
      package_.nodes = chiplets + package_.compute_count;
      for (int c = 0; c < package_.compute_count; ++c) {
        const std::string& name = package_.chiplets[static_cast<Index>(c)].name;
        add_link(c, router_node(package_, c), LinkClass::noc, noc_, name + ".inject");
        add_link(router_node(package_, c), c, LinkClass::noc, noc_, name + ".eject");
      }
      for (const TopologyGraph::Edge& e : topology_.edges) {
        LinkKind kind = d2d;
        kind.distance *= e.pitches;
        add_d2d(e.from, e.to, kind);
      }
      for (const auto& [io, c] : attach_) {
        if (d2d_.count({c, io}) != 0) continue;  // listed twice
        add_d2d(c, io, d2d);
        add_d2d(io, c, d2d);
      }
    }
    std::set<std::pair<int, int>> given;
    for (TableReader& table : root_.tables("link")) read_link(table, d2d, given);
  }

  void read_link(TableReader& table, const LinkKind& d2d, std::set<std::pair<int, int>>& given) {
    const std::string from_name = table.text("from"), to_name = table.text("to");
    const bool both = table.flag("both", true);
    const int from = table.has("from") ? chiplet_named(table, "from", from_name) : -1;
    const int to = table.has("to") ? chiplet_named(table, "to", to_name) : -1;
    if (from >= 0 && from == to) table.error("to", "a link from " + to_name + " to itself", "name two chiplets");
    const bool good = from >= 0 && to >= 0 && from != to;
    const Index before = problems_.items().size();
    for (const bool back : {false, true}) {
      if (back && !both) break;
      const std::pair<int, int> pair = back ? std::make_pair(to, from) : std::make_pair(from, to);
      const auto existing = good ? d2d_.find(pair) : d2d_.end();
      const LinkKind base = existing == d2d_.end() ? d2d : kinds_[existing->second];
      const LinkKind kind = read_kind(table, base);
      if (!good || problems_.items().size() != before) break;
      const std::string name = (back ? to_name : from_name) + "->" + (back ? from_name : to_name);
      if (!given.insert(pair).second) {
        table.error("from", "link " + name + " is given twice", "delete one, or use both = false for one direction");
        break;
      }
      if (existing != d2d_.end()) {
        set_kind(package_.links[existing->second], kind);
        kinds_[existing->second] = kind;
      } else if (package_.routing == "xy") {
        table.error("from", "xy routing never takes the new link " + name, "use routing = \"table\" in [topology]");
        break;
      } else {
        add_d2d(pair.first, pair.second, kind);
      }
    }
    table.finish();
  }

  /// The physical keys of a [[link]], each defaulting to `base`.
  LinkKind read_kind(TableReader& table, const LinkKind& base) {
    ParamSet values;
    for (Param p : section("d2d").params) {
      p.required = false;
      if (p.name == "bandwidth") p.default_value = base.bandwidth;
      if (p.name == "energy") p.default_value = base.energy;
      if (p.name == "distance") p.default_value = base.distance;
      if (p.name == "signal_speed") p.default_value = base.signal_speed;
      if (p.name == "router_cycles") p.default_value = base.router_cycles;
      if (p.name == "overhead") p.default_value = base.overhead;
      values.set(p.name, table.param(p));
    }
    return link_kind(values);
  }

  void read_groups() {
    package_.groups = 1;
    std::optional<TableReader> table = root_.sub("groups");
    if (table) {
      const ParamSet groups = read_section(*table, "groups", {"list"});
      const std::int64_t w = groups.integer("width"), h = groups.integer("height");
      const auto lists = table->integer_lists("list", {0, kMaxChiplets - 1});
      if (table->has("list") && (table->has("width") || table->has("height"))) {
        table->error("list", "both a list and a block size", "keep one of them");
      } else if (table->has("list")) {
        if (graph_known_) list_groups(*table, lists);
      } else if (w < 1 || h < 1) {
        table->error(w < 1 ? "width" : "height", "a block needs a width and a height", "e.g. width = 2, height = 2");
      } else if (graph_known_) {
        const int across = static_cast<int>((package_.width + w - 1) / w);
        for (int c = 0; c < package_.compute_count; ++c) {
          Chiplet& chiplet = package_.chiplets[static_cast<Index>(c)];
          chiplet.group = static_cast<int>(chiplet.y / h) * across + static_cast<int>(chiplet.x / w);
          package_.groups = std::max(package_.groups, chiplet.group + 1);
        }
      }
      table->finish();
    }
    for (Index i = static_cast<Index>(package_.compute_count); graph_known_ && i < package_.chiplets.size(); ++i) {
      const auto& [span, key] = group_spans_[i - static_cast<Index>(package_.compute_count)];
      if (package_.chiplets[i].group >= package_.groups)
        problems_.error(span, key, fmt::format("no group {}", package_.chiplets[i].group),
                        fmt::format("groups are 0 to {}", package_.groups - 1));
    }
  }

  void list_groups(TableReader& table, const std::vector<std::vector<std::int64_t>>& lists) {
    std::vector<int> group(static_cast<Index>(package_.compute_count), -1);
    for (Index g = 0; g < lists.size(); ++g) {
      for (const std::int64_t c : lists[g]) {
        if (c >= package_.compute_count) {
          table.error("list", fmt::format("no compute chiplet {}", c),
                      fmt::format("chiplets are 0 to {}", package_.compute_count - 1));
        } else if (group[static_cast<Index>(c)] >= 0) {
          table.error("list", fmt::format("chiplet {} is in two groups", c), "list every chiplet once");
        } else {
          group[static_cast<Index>(c)] = static_cast<int>(g);
        }
      }
    }
    std::string missing;
    for (Index c = 0; c < group.size(); ++c) {
      if (group[c] < 0) missing += (missing.empty() ? "c" : ", c") + std::to_string(c);
      package_.chiplets[c].group = std::max(group[c], 0);
    }
    if (!missing.empty()) table.error("list", "in no group: " + missing, "list every compute chiplet once");
    package_.groups = std::max(1, static_cast<int>(lists.size()));
  }

  struct Placed {
    Bank bank;
    int count = 0;
  };

  /// A record in place of a latency: its idle latency, and the part of the peak that its streams get.
  void apply_timing(TableReader& table, const ParamSet& p, Bank& bank) {
    if (table.has("latency")) table.error("latency", "timing gives it already", "remove latency, or timing");
    const Result<MemoryTiming> timing = memory_preset(p.word("timing"));
    if (!timing) {
      for (const Diagnostic& d : timing.error().diagnostics.items()) table.error("timing", d.message, d.remedy);
      return;
    }
    const double part = timing->efficiency(static_cast<int>(p.integer("timing_streams")));
    bank.latency = std::llround(timing->idle_ns * 1000);
    bank.bandwidth =
        Rate(static_cast<std::uint64_t>(std::max(1.0, static_cast<double>(p.integer("bandwidth")) * part)));
  }

  void read_memory() {
    std::map<std::pair<int, int>, Placed> sets;  // (tier, chiplet)
    constexpr std::int64_t kMostBanks = 1 << 17;
    std::int64_t total = 0;
    for (TableReader& table : root_.tables("memory", true)) {
      const bool timed = table.has("timing");
      const ParamSet p = read_section(table, "memory", {"at", timed ? "latency" : "at"});
      Placed placed;
      Bank& bank = placed.bank;
      const std::string tier = p.word("tier");
      bank.tier = tier == "hbm" ? Tier::hbm : tier == "dram" ? Tier::dram : Tier::sram;
      bank.capacity = p.integer("capacity");
      bank.bandwidth = Rate(static_cast<std::uint64_t>(std::max<std::int64_t>(p.integer("bandwidth"), 1)));
      bank.latency = p.integer("latency");
      if (timed) apply_timing(table, p, bank);
      bank.energy_per_byte = p.integer("energy");
      bank.reserve_activation = p.integer("reserve_activation");
      bank.reserve_metadata = p.integer("reserve_metadata");
      placed.count = static_cast<int>(p.integer("banks"));
      if (bank.usable() < 0)
        table.error(
            table.has("reserve_activation") ? "reserve_activation" : "reserve_metadata",
            fmt::format("reservations of {} exceed the bank's {}",
                        format_bytes(bank.reserve_activation + bank.reserve_metadata), format_bytes(bank.capacity)),
            "lower reserve_activation and reserve_metadata, or raise capacity");
      for (const int c : chiplets_at(table)) {
        total += placed.count;
        bank.owner = c;
        if (!sets.emplace(std::make_pair(static_cast<int>(bank.tier), c), placed).second) {
          table.error("at", fmt::format("{} has {} banks already", package_.chiplets[static_cast<Index>(c)].name, tier),
                      "give each tier of a chiplet in one [[memory]] table");
          break;
        }
      }
      if (total > kMostBanks) {
        table.error("banks", fmt::format("more than {} banks in the package", kMostBanks), "use fewer, larger banks");
        break;
      }
      table.finish();
    }
    if (total > kMostBanks || problems_.has_errors()) return;
    for (const auto& [key, placed] : sets) {
      BankSet set;
      set.tier = placed.bank.tier;
      set.owner = placed.bank.owner;
      set.first_bank = static_cast<int>(package_.banks.size());
      set.count = placed.count;
      for (int b = 0; b < placed.count; ++b) {
        Bank bank = placed.bank;
        bank.index = b;
        set.usable += bank.usable();
        set.bandwidth += bank.bandwidth.per_second();
        package_.banks.push_back(bank);
      }
      package_.bank_sets.push_back(set);
    }
  }

  std::vector<int> chiplets_at(TableReader& table) {
    std::vector<int> out;
    if (!table.require("at")) return out;
    const std::vector<std::string> names = table.texts("at");
    if (names.empty()) table.error("at", "on no chiplet", "write \"compute\", \"io\" or a list of chiplet names");
    for (const std::string& name : names) {
      if (name == "compute" || name == "io") {
        const Index before = out.size();
        for (Index c = 0; c < package_.chiplets.size(); ++c)
          if (package_.chiplets[c].compute == (name == "compute")) out.push_back(static_cast<int>(c));
        if (out.size() == before && graph_known_) table.error("at", "there is no IO chiplet", "add an [[io]] table");
      } else if (const int c = chiplet_named(table, "at", name); c >= 0) {
        out.push_back(c);
      }
    }
    return out;
  }

  void read_rest() {
    const ParamSet power = read_optional(root_, "power");
    package_.power_cap_w = power.number("cap");
    package_.throttle_floor = power.number("throttle_floor");
    const ParamSet control = read_optional(root_, "control");
    package_.energy_per_gate_group = control.integer("gate_energy");
    package_.energy_per_migration = control.integer("migration_energy");
    package_.gate_overhead = control.integer("gate_overhead");
    const ParamSet stream = read_optional(root_, "stream");
    package_.chunk_bytes = stream.integer("chunk");
    package_.weight_tiles = static_cast<int>(stream.integer("weight_tiles"));
    package_.prefetch_depth = static_cast<int>(stream.integer("prefetch_depth"));
    const ParamSet flit = read_optional(root_, "flit");
    package_.flit.bytes = flit.integer("bytes");
    package_.flit.packet = flit.integer("packet");
    package_.flit.vcs = static_cast<int>(flit.integer("vcs"));
    package_.flit.buffer = static_cast<int>(flit.integer("buffer"));
    package_.flit.speculative = flit.flag("speculative");
    package_.flit.oldest_first = flit.word("arbitration") == "age";
    package_.flit.adaptive = flit.word("routing") == "adaptive";
    const ParamSet handover = read_optional(root_, "handover");
    package_.handover = Rate(static_cast<std::uint64_t>(std::max<std::int64_t>(handover.integer("bandwidth"), 1)));
    package_.handover_latency = handover.integer("latency");
  }

  void connect() {
    check_reachable(package_, topology_where_, problems_);
    if (problems_.has_errors()) return;
    fill_routes(package_, topology_, limits_.route_entries, topology_where_, problems_);
    if (problems_.has_errors()) return;
    for (auto& tier : package_.visible_sets) tier.assign(static_cast<Index>(package_.compute_count), {});
    for (int c = 0; c < package_.compute_count; ++c) {
      bool any = false;
      for (int t = 0; t < kTiers; ++t) {
        std::vector<std::tuple<bool, Ps, int>> seen;  // own set first, then by distance, then by id
        for (Index s = 0; s < package_.bank_sets.size(); ++s) {
          const BankSet& set = package_.bank_sets[s];
          const bool own = set.owner == c;
          if (static_cast<int>(set.tier) != t) continue;
          if (!own && package_.chiplets[static_cast<Index>(set.owner)].compute) continue;
          seen.emplace_back(!own, route_latency(package_, set.owner, c), static_cast<int>(s));
        }
        std::sort(seen.begin(), seen.end());
        auto& out = package_.visible_sets[static_cast<Index>(t)][static_cast<Index>(c)];
        for (const auto& [other, latency, set] : seen) out.push_back(set);
        any = any || !out.empty();
      }
      if (any) continue;
      root_.error("memory", package_.chiplets[static_cast<Index>(c)].name + " sees no memory bank",
                  "add a [[memory]] table at = \"compute\" or at = \"io\"");
      return;
    }
  }

  PackageLimits limits_;
  Diagnostics& problems_;
  TableReader root_;
  TopologyRegistry topologies_;
  TopologyGraph topology_;
  SourceSpan topology_where_;
  bool graph_known_ = false;  ///< [topology] was right: chiplet names can be judged
  Package package_;
  std::map<std::string, int> names_;  ///< of chiplets
  LinkKind noc_;
  std::vector<LinkKind> kinds_;                                  ///< of every link
  std::map<std::pair<int, int>, Index> d2d_;                     ///< (from chiplet, to chiplet) -> link
  std::vector<std::pair<int, int>> attach_;                      ///< (IO chiplet, compute chiplet)
  std::vector<std::pair<SourceSpan, std::string>> group_spans_;  ///< of each [[io]]'s group
};

Result<Package> build(const ConfigFile& file, const PackageLimits& limits, Diagnostics* warnings) {
  Diagnostics problems;
  Package package = Loader(file, limits, problems).load();
  const Diagnostics sorted = in_file_order(problems);
  if (sorted.has_errors()) return fail(sorted);
  if (warnings != nullptr) warnings->append(sorted);
  return package;
}

}  // namespace

Result<Package> parse_package(std::string_view text, const std::string& name, Diagnostics* warnings,
                              const PackageLimits& limits) {
  const Result<ConfigFile> file = ConfigFile::parse_text(text, name);
  if (!file) return tl::unexpected<Failure>(file.error());
  return build(*file, limits, warnings);
}

std::vector<std::pair<std::string, std::string>> list_packages(const std::vector<std::string>& search_dirs) {
  std::map<std::string, std::string> found;
  for (const std::string& dir : search_dirs) {
    std::error_code problem;
    for (std::filesystem::directory_iterator it(dir, problem), end; !problem && it != end; it.increment(problem))
      if (it->path().extension() == ".toml") found.emplace(it->path().stem().string(), it->path().string());
  }
  return {found.begin(), found.end()};
}

Result<Package> load_package(const std::string& name_or_path, const std::vector<std::string>& search_dirs,
                             Diagnostics* warnings) {
  const std::string extension = ".toml";
  const bool is_path = name_or_path.find('/') != std::string::npos ||
                       (name_or_path.size() > extension.size() &&
                        name_or_path.compare(name_or_path.size() - extension.size(), extension.size(), extension) == 0);
  std::string path = is_path ? name_or_path : "";
  if (!is_path) {
    std::vector<std::string> names;
    std::string known;
    for (const auto& [name, file] : list_packages(search_dirs)) {
      if (name == name_or_path) path = file;
      names.push_back(name);
      known += (known.empty() ? "" : ", ") + name;
    }
    if (path.empty()) {
      const std::string near = closest(name_or_path, names);
      return fail({}, "package", "unknown package '" + name_or_path + "'",
                  (near.empty() ? "" : "did you mean " + near + "? ") +
                      (known.empty() ? "no presets found; give a path to a .toml file" : "(known: " + known + ")"));
    }
  }
  const Result<ConfigFile> file = ConfigFile::parse_file(path);
  if (!file) return tl::unexpected<Failure>(file.error());
  return build(*file, {}, warnings);
}

}  // namespace sojourn
