// Captures layers from a comparison and replays them on each network model; see network_models.h.
#include "study/network_models.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <mutex>
#include <tuple>

#include "base/parallel.h"
#include "moe/closed_form.h"
#include "network/flit_package.h"

namespace sojourn {
namespace {

/// Processor time of this thread, so that other work on the machine does not count.
double seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

/// A layer's work with its own storage.
struct Captured {
  std::string model, policy;
  Mode mode = Mode::prefill;
  int window = 0, layer = 0;
  std::vector<Job> jobs;
  std::vector<Piece> pieces;
  LayerWork work;
};

class Capture final : public LayerObserver {
 public:
  Capture(int first_window, std::vector<Captured>& out) : first_window_(first_window), out_(out) {}
  void on_layer(const std::string& model, Mode mode, const std::string& policy, int window, int layer,
                const LayerWork& work) override {
    if (window < first_window_ || layer != 0 || work.pieces->empty()) return;
    const std::lock_guard<std::mutex> guard(lock_);
    out_.push_back({model, policy, mode, window, layer, *work.jobs, *work.pieces, work});
  }

 private:
  int first_window_;
  std::vector<Captured>& out_;
  std::mutex lock_;
};

struct Sent {
  std::span<const int> path;
  Bytes bytes = 0;
};

std::vector<Sent> dispatch_of(const Package& p, const Captured& c) {
  const int n = p.compute_count;
  std::vector<Bytes> flow(static_cast<std::size_t>(n * n), 0);
  for (const Piece& piece : c.pieces)
    flow[static_cast<std::size_t>(piece.source * n + c.jobs[static_cast<std::size_t>(piece.job)].at.chiplet)] +=
        piece.tokens * c.work.token_bytes;
  std::vector<Sent> out;
  for (int s = 0; s < n; ++s)
    for (int i = 0; i < n; ++i) {
      const int to = (s + i) % n;  // as the executor sends them
      const Bytes bytes = flow[static_cast<std::size_t>(s * n + to)];
      if (bytes > 0 && to != s) out.push_back({p.route_chiplets(s, to), bytes});
    }
  return out;
}

std::vector<Sent> gather_of(const Package& p, const Captured& c) {
  std::vector<Sent> out;
  std::vector<std::vector<int>> by_job(c.jobs.size());
  for (std::size_t i = 0; i < c.pieces.size(); ++i)
    by_job[static_cast<std::size_t>(c.pieces[i].job)].push_back(static_cast<int>(i));
  for (std::size_t j = 0; j < by_job.size(); ++j)
    for (const int i : by_job[j]) {
      const Piece& piece = c.pieces[static_cast<std::size_t>(i)];
      const auto path = p.route_chiplets(c.jobs[j].at.chiplet, piece.source);
      if (!path.empty()) out.push_back({path, piece.tokens * c.work.token_bytes});
    }
  return out;
}

/// Messages on one event model, all sent at time 0.
class Phase final : public NetworkSink {
 public:
  Phase(NetworkKind kind, const Package& package, const std::vector<Sent>& messages, Traffic traffic)
      : ledger_(package),
        network_(make_network(kind, package, engine_, ledger_, *this)),
        messages_(messages),
        traffic_(traffic) {}
  Ps run() {
    for (std::size_t i = 0; i < messages_.size(); ++i)
      network_->send({messages_[i].path, messages_[i].bytes, traffic_, static_cast<std::uint32_t>(i), 0, 0, false});
    engine_.run(*this);
    return last_;
  }
  void on_event(const Event& event) { network_->on_event(event); }
  [[nodiscard]] bool finished() const { return false; }
  void on_delivered(Traffic, std::uint32_t, Bytes, Ps at) override { last_ = std::max(last_, at); }

 private:
  Engine engine_;
  Ledger ledger_;
  std::unique_ptr<Network> network_;
  const std::vector<Sent>& messages_;
  Traffic traffic_;
  Ps last_ = 0;
};

/// (8) of HCRMap for one class alone.
Ps closed_phase(const Package& p, const std::vector<Sent>& messages) {
  ClassLoad load(p);
  for (const Sent& m : messages) load.request(m.path, m.bytes);
  return load.time();
}

struct Nobody final : ExecutorListener {
  void on_job_done(int) override {}
  void on_transfer_done(std::uint32_t, Ps) override {}
};

void run_case(const Package& p, const Captured& c, std::vector<ModelCase>& out) {
  const auto add = [&](const char* what) -> ModelCase& {
    out.push_back({c.model, mode_name(c.mode), c.policy, c.window, c.layer, what, 0, 0, 0, 0, 0, 0});
    return out.back();
  };
  for (const Traffic traffic : {Traffic::dispatch, Traffic::gather}) {
    const bool there = traffic == Traffic::dispatch;
    const std::vector<Sent> messages = there ? dispatch_of(p, c) : gather_of(p, c);
    if (messages.empty()) continue;
    ModelCase& m = add(there ? "dispatch" : "gather");
    for (const Sent& s : messages) m.bytes += s.bytes;
    m.closed = closed_phase(p, messages);
    Phase packet(NetworkKind::packet, p, messages, traffic), flit(NetworkKind::flit, p, messages, traffic);
    m.packet_s = seconds_of([&] { m.packet = packet.run(); });
    m.flit_s = seconds_of([&] { m.flit = flit.run(); });
  }
  LayerWork work = c.work;
  work.jobs = &c.jobs;
  work.pieces = &c.pieces;
  ModelCase& m = add("layer");
  Ledger ledger(p);
  Nobody nobody;
  m.closed = closed_layer(p, work, {}, 0, ledger).end;
  Executor packet(p, nobody, NetworkKind::packet), flit(p, nobody, NetworkKind::flit);
  m.packet_s = seconds_of([&] { m.packet = packet.run_layer(work).end; });
  m.flit_s = seconds_of([&] { m.flit = flit.run_layer(work).end; });
  for (const Bytes b : ledger.requested) m.bytes += b;
}

}  // namespace

std::vector<ModelRow> NetworkModels::rows() const {
  std::map<std::pair<std::string, std::string>, ModelRow> rows;
  std::map<std::pair<std::string, std::string>, std::pair<double, double>> wall;
  for (const ModelCase& c : cases) {
    const auto key = std::make_pair(c.what, c.mode);
    ModelRow& r = rows[key];
    r.mode = c.mode;
    r.what = c.what;
    ++r.n;
    const double flit = static_cast<double>(c.flit), closed = static_cast<double>(c.closed) / flit - 1,
                 packet = static_cast<double>(c.packet) / flit - 1;
    r.closed_mean += std::abs(closed);
    r.packet_mean += std::abs(packet);
    r.closed_bias += closed;
    r.packet_bias += packet;
    r.closed_worst = std::max(r.closed_worst, std::abs(closed));
    r.packet_worst = std::max(r.packet_worst, std::abs(packet));
    wall[key].first += c.flit_s;
    wall[key].second += c.packet_s;
  }
  std::vector<ModelRow> out;
  for (auto& [key, r] : rows) {
    for (double* x : {&r.closed_mean, &r.packet_mean, &r.closed_bias, &r.packet_bias}) *x /= static_cast<double>(r.n);
    const auto [flit, packet] = wall[key];
    r.speed = packet > 0 ? flit / packet : 0;
    out.push_back(r);
  }
  return out;
}

Result<NetworkModels> compare_networks(CompareOptions options, const PolicyRegistry& registry, ProgressSink& progress) {
  std::vector<Captured> captured;
  Capture capture(options.warmup, captured);
  options.network = NetworkKind::packet;
  options.observer = &capture;
  auto run = run_compare(options, registry, progress, nullptr);
  if (!run) return tl::unexpected<Failure>(run.error());
  NetworkModels out;
  if (auto map = flit_map(run->package); !map) return tl::unexpected<Failure>(map.error());
  std::sort(captured.begin(), captured.end(), [](const Captured& a, const Captured& b) {
    return std::tie(a.model, a.mode, a.policy, a.window, a.layer) <
           std::tie(b.model, b.mode, b.policy, b.window, b.layer);
  });
  std::vector<std::vector<ModelCase>> cases(captured.size());
  std::mutex lock;
  int done = 0;
  parallel_for(captured.size(), options.threads, [&](std::size_t i) {
    if (progress.interrupted()) return;
    run_case(run->package, captured[i], cases[i]);
    const std::lock_guard<std::mutex> guard(lock);
    progress.step(++done, static_cast<int>(captured.size()), "networks " + captured[i].model);
  });
  out.interrupted = run->interrupted || progress.interrupted();
  for (auto& list : cases) out.cases.insert(out.cases.end(), list.begin(), list.end());
  return out;
}

}  // namespace sojourn
