// popnet: runs a popnet packet list through the model of its routers, with popnet's option letters, so that LEGOSim can
// name `sojourn popnet` as its network simulator.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/io.h"
#include "cli/values.h"
#include "network/popnet/bench.h"
#include "network/popnet/gv.h"

namespace sojourn::cli {
namespace {

using namespace popnet;

enum RoutingWord { kMesh = 0, kTorus = 1, kGraph = 4 };

struct Job {
  PopnetConfig config;
  BenchFormat format;
  double limit = 0;
  std::string network;  ///< "4x4 mesh, XY"
  Diagnostics notes;
};

void note(Job& job, const char* key, const std::string& text) { job.notes.warning(command_line(), key, text); }

void name_unused(const PopnetArgs& args, bool graph_unused, Job& job) {
  const auto unused = [&](const char* key, const std::string& value, const char* why) {
    if (!value.empty()) note(job, key, std::string("accepted, without effect: ") + why);
  };
  unused("-L", args.link_length, "it only sets popnet's link power");
  unused("-m", args.report_period, "there are no progress reports");
  unused("-l", args.packet_loss, "credits keep every buffer from overflowing, so nothing is lost");
  unused("-C", args.reconfiguration, "topologies do not change during a run");
  if (graph_unused) unused("-G", args.graph, "-R 0 and -R 1 are grids");
}

Result<Job> read_graph(const PopnetArgs& args, std::int64_t side, bool side_given, Job job) {
  auto text = read_text(args.graph, "-G");
  if (!text) return tl::unexpected(text.error());
  auto gv = read_gv(*text, args.graph, job.notes);
  if (!gv) return tl::unexpected(gv.error());
  if (side_given && side != gv->routers)
    note(job, "-A", fmt::format("{}, but {} has {} routers: these count", side, args.graph, gv->routers));
  job.config = graph(gv->routers, gv->edges, gv->period, gv->order);
  job.format.side = gv->routers;
  job.network = fmt::format("graph of {} routers and {} links, shortest paths", gv->routers, gv->edges.size());
  return job;
}

/// Packets between routers that nothing joins.
Result<void> check_joined(const Job& job, const Bench& bench, const std::string& path) {
  if (job.config.routing != Routing::table) return {};
  const auto n = static_cast<std::size_t>(job.config.routers);
  for (std::size_t i = 0; i < bench.packets.size(); ++i) {
    const Packet& p = bench.packets[i];
    if (p.source != p.destination &&
        job.config.table[static_cast<std::size_t>(p.source) * n + static_cast<std::size_t>(p.destination)] < 0)
      return fail({path, 0, 0}, "destination",
                  fmt::format("packet {}: no way leads from {} to {}", i + 1, p.source, p.destination),
                  "join them in the graph of -G");
  }
  return {};
}

Result<Job> read_job(const PopnetArgs& args) {
  Values values;
  Job job;
  const std::int64_t routing = values.whole("-R", args.routing, args.graph.empty() ? kMesh : kGraph, 0, 5);
  const bool as_graph = routing == kGraph;
  const std::int64_t side = values.whole("-A", args.side, 8, 1, as_graph ? 1'000'000 : kLargestSide);
  const std::int64_t dimensions = values.whole("-c", args.dimensions, as_graph ? 1 : 2, 1, 8);
  const std::int64_t vcs = values.whole("-V", args.vcs, 2, 1, kMostVcs);
  const std::int64_t in = values.whole("-B", args.in_buffer, 64, 1, 1 << 20);
  const std::int64_t out = values.whole("-O", args.out_buffer, 4, 1, 1 << 20);
  const std::int64_t words = values.whole("-F", args.flit_words, 4, 0, std::int64_t{1} << 32);
  const std::int64_t seed = values.whole("-r", args.seed, 1, INT64_MIN, INT64_MAX);
  job.limit = values.number("-T", args.limit, 1e9, 0, 1e300);
  (void)values.number("-L", args.link_length, 0, 0, 1e300);
  if (args.bench.empty()) values.error("-I", "missing", "give the file of packets");
  if (routing == 2 || routing == 3 || routing == 5)
    values.error("-R", args.routing + ": not modelled", "0 XY mesh, 1 torus, 4 graph; write other networks as a graph");
  if (values.ok() && dimensions != (as_graph ? 1 : 2))
    values.error("-c", fmt::format("{} dimensions", dimensions), as_graph ? "a graph has 1" : "grids have 2");
  if (as_graph && args.graph.empty()) values.error("-G", "missing", "-R 4 needs a .gv file");
  if (!values.ok()) return tl::unexpected(values.failure());
  if (as_graph && args.routing.empty()) note(job, "-R", "not given: -R 4, because of -G");
  name_unused(args, !as_graph, job);
  job.format = {static_cast<int>(dimensions), static_cast<int>(side), args.protocol};
  if (as_graph) {
    auto read = read_graph(args, side, !args.side.empty(), std::move(job));
    if (!read) return read;
    job = std::move(*read);
  } else {
    job.config = grid(static_cast<int>(side), routing == kMesh ? Routing::mesh : Routing::torus);
    job.network = fmt::format("{0}x{0} {1}", side, routing == kMesh ? "mesh, XY" : "torus");
  }
  job.config.vcs = static_cast<int>(vcs);
  job.config.in_buffer = static_cast<int>(in);
  job.config.out_buffer = static_cast<int>(out);
  job.config.flit_words = words;
  job.config.seed = static_cast<std::uint32_t>(seed);
  if (auto fine = popnet::check(job.config); !fine) return tl::unexpected(fine.error());
  return job;
}

struct Totals {
  std::size_t arrived = 0;
  std::int64_t flits = 0;
  double mean = 0, largest = 0, last = 0;
};

Totals totals(const Bench& bench, const Run& run) {
  Totals t;
  for (const Packet& p : bench.packets) t.flits += p.flits;
  for (const Arrival& a : run.arrivals) {
    t.last = std::max(t.last, a.time);
    if (a.reply) continue;
    ++t.arrived;
    t.mean += a.time - a.ready;
    t.largest = std::max(t.largest, a.time - a.ready);
  }
  if (t.arrived > 0) t.mean /= static_cast<double>(t.arrived);
  return t;
}

const char* name_of(Ending e) {
  return e == Ending::all_arrived ? "all arrived" : e == Ending::limit ? "limit" : "blocked";
}

std::string json_text(const Job& job, const Bench& bench, const Run& run, const Totals& t) {
  JsonWriter w;
  begin_document(w, "sojourn.popnet/1");
  w.key("settings")
      .begin_object()
      .field("network", job.network)
      .field("routers", job.config.routers)
      .field("vcs", job.config.vcs)
      .field("in_buffer", job.config.in_buffer)
      .field("out_buffer", job.config.out_buffer)
      .field("flit_size", job.config.flit_words)
      .field("seed", static_cast<std::int64_t>(job.config.seed))
      .field("limit_cycles", job.limit)
      .end_object();
  w.field("packets", static_cast<std::int64_t>(bench.packets.size()))
      .field("arrived", static_cast<std::int64_t>(t.arrived))
      .field("replies", static_cast<std::int64_t>(run.arrivals.size() - t.arrived))
      .field("ending", name_of(run.ending))
      .field("flits", t.flits)
      .field("flit_hops", run.flit_hops)
      .field("steps", run.steps)
      .field("mean_delay_cycles", t.mean)
      .field("largest_delay_cycles", t.largest)
      .field("last_arrival_cycle", t.last);
  w.key("notes").begin_array();
  for (const Diagnostic& d : job.notes.items()) w.value(d.text());
  w.end_array();
  end_document(w, "popnet");
  return w.take();
}

}  // namespace

int popnet_run(const PopnetArgs& args) {
  auto job = read_job(args);
  if (!job) return report(job.error());
  const std::string delays = args.delays.empty() ? "./delayInfo.txt" : args.delays;
  auto text = read_text(args.bench, "-I");
  if (!text) return report(text.error());
  auto bench = read_bench(*text, args.bench, job->format);
  if (!bench) return report(bench.error());
  text->clear();
  text->shrink_to_fit();
  if (!bench->sorted) job->notes.warning({args.bench, 0, 0}, "time", "not in order of time: sorted, as popnet does");
  if (auto fine = check_joined(*job, *bench, args.bench); !fine) return report(fine.error());
  if (auto fine = check_distinct({{delays, "-D"}, {args.json, "--json"}}, {args.bench, args.graph}); !fine)
    return report(fine.error());
  for (const auto& [path, option] : {std::pair{delays, "-D"}, std::pair{args.json, "--json"}})
    if (auto fine = check_writable(path, option); !fine) return report(fine.error());
  print_warnings(job->notes);

  const Run run = simulate(job->config, bench->packets, job->limit);
  const Totals t = totals(*bench, run);
  if (auto written = write_output(delays, "-D", delay_text(*bench, job->format, run.arrivals)); !written)
    return report(written.error());
  if (auto written = write_output(args.json, "--json", json_text(*job, *bench, run, t)); !written)
    return report(written.error());
  TextOutput(delays == "-" ? delays : args.json, args.quiet)
      .write(fmt::format("popnet: {}, {} VCs, buffers {} in, {} out, seed {}\n"
                         "  packets: {} of {} arrived, {} flits, {} flit hops, {} pipeline steps\n"
                         "  delay:   mean {:.2f}, largest {:.0f} cycles; last arrival at cycle {:.0f}\n"
                         "  delays:  {}\n",
                         job->network, job->config.vcs, job->config.in_buffer, job->config.out_buffer, job->config.seed,
                         t.arrived, bench->packets.size(), t.flits, run.flit_hops, run.steps, t.mean, t.largest, t.last,
                         delays));
  Diagnostics ended;
  if (run.ending == Ending::limit) {
    ended.warning(command_line(), "-T",
                  fmt::format("{:g} cycles ended the run; what arrived later is not in {}", job->limit, delays),
                  "give more cycles");
    print_warnings(ended);
  } else if (run.ending == Ending::blocked) {
    ended.error({args.bench, 0, 0}, "",
                fmt::format("{} packets never arrive: they wait for one another, and popnet would run idle up to -T",
                            bench->packets.size() - t.arrived),
                "give a topology without circles of shortest paths, or more VCs");
    report(Failure{ended, kCheckFailed});
    return kCheckFailed;
  }
  return kDone;
}

}  // namespace sojourn::cli
