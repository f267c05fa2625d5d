// A made-up comparison for tests of the reports: two modes, three models, six policies on a 4x4 package. No number in
// it means anything; it is a fixed function of the indices.
#pragma once
#include <string>

#include "sojourn/results.h"

namespace sojourn::testing {

inline Package sample_package(int side = 4) {
  Package p;
  p.name = "sample";
  p.width = p.height = side;
  p.compute_count = side * side;
  p.nodes = side * side + 2;
  for (int i = 0; i < side * side; ++i) {
    Chiplet c;
    c.name = "c" + std::to_string(i);
    c.node = i;
    c.x = i % side;
    c.y = i / side;
    c.cores = 16;
    p.chiplets.push_back(c);
  }
  for (int k = 0; k < 2; ++k) {
    Chiplet c;
    c.name = "io" + std::to_string(k);
    c.compute = false;
    c.node = side * side + k;
    c.x = k == 0 ? -1 : side;
    c.y = side / 2;
    p.chiplets.push_back(c);
  }
  const auto link = [&](int a, int b) {
    Link u;
    u.name = p.chiplets[static_cast<size_t>(a)].name + "->" + p.chiplets[static_cast<size_t>(b)].name;
    u.from = a;
    u.to = b;
    u.bandwidth = Rate(64'000'000'000ULL);
    p.links.push_back(u);
  };
  for (int i = 0; i < side * side; ++i) {
    if (i % side + 1 < side) {
      link(i, i + 1);
      link(i + 1, i);
    }
    if (i / side + 1 < side) {
      link(i, i + side);
      link(i + side, i);
    }
  }
  for (int k = 0; k < 2; ++k) {
    const int edge = side * (side / 2) + (k == 0 ? 0 : side - 1);
    link(edge, side * side + k);
    link(side * side + k, edge);
  }
  return p;
}

inline CompareResult sample_comparison(std::vector<std::string> models = {"mixtral-8x7b", "deepseek-v3",
                                                                          "qwen1.5-moe"}) {
  CompareResult out;
  out.package = sample_package();
  const std::vector<std::string> policies = {"static", "hydra", "moentwine", "pimoe", "hcrmap", "sojourn"};
  for (const char* mode : {"prefill", "decode"}) {
    for (size_t m = 0; m < models.size(); ++m) {
      Ps base = 0;
      for (size_t q = 0; q < policies.size(); ++q) {
        RunResult r;
        r.model = models[m];
        r.mode = mode;
        r.policy = policies[q];
        r.package = "sample";
        r.network = "packet";
        r.trace_name = "trace-" + std::to_string(m);
        r.trace_sha256 = std::string(64, static_cast<char>('a' + static_cast<char>(m)));
        r.trace_origin = m == 0 ? "recorded" : m == 1 ? "surrogate" : "calibrated";
        r.windows = 20;
        r.warmup = 8;
        r.packages = 1;
        r.moe_layers = 24;
        const Ps unit = (*mode == 'p' ? 4'000'000 : 700'000) * static_cast<Ps>(m + 1);
        const Ps q_gain = static_cast<Ps>(q == 2 ? 3 : q);
        r.stages_ps = {unit / 20, unit,     unit * (9 - q_gain) / 5, unit * 2, unit * (12 - q_gain) / 4,
                       unit / 2,  unit / 10};
        Ps layer = 0;
        for (const Ps s : r.stages_ps) layer += s;
        r.moe_latency_ps = layer * r.moe_layers;
        r.lower_bound_ps = unit * 4 * r.moe_layers;
        r.bound_resource = "hbm c3";
        r.latency_ps = r.moe_latency_ps + unit * 40;
        r.latency_ps_ci95 = unit * 2;
        if (q == 0) base = r.latency_ps;
        r.normalized_latency = static_cast<double>(r.latency_ps) / static_cast<double>(base);
        const Fj e = unit * 90'000;
        r.energy = {e * 3,
                    e / 4,
                    e * static_cast<Fj>(7 - q) / 4,
                    e / 3,
                    e,
                    e / 2 * static_cast<Fj>(6 - q),
                    e / 50 * static_cast<Fj>(q),
                    e / 200};
        r.edp_js = static_cast<double>(r.energy.total()) * 1e-15 * ps_to_s(r.latency_ps);
        r.bytes_dispatch = 1 << 20;
        r.bytes_gather = 1 << 20;
        r.bytes_memory = 1 << 26;
        r.bytes_migration = static_cast<Bytes>(q) << 16;
        r.replicas_mean = 1.0 + 0.06 * static_cast<double>(q);
        r.promote = static_cast<std::int64_t>(q) * 3;
        r.resident_bytes_max = 3LL << 30;
        r.budget_bytes = 4LL << 30;
        r.load_max_over_mean = 2.1 - 0.2 * static_cast<double>(q);
        r.events = 100'000;
        r.wall_s = 0.25;
        r.token_reuse = m == 0 ? 0.6 : 1.8;
        for (int w = 0; w < r.windows; ++w) r.window_ps.push_back(r.latency_ps + (w % 5 - 2) * unit);
        for (int c = 0; c < out.package.compute_count; ++c)
          r.chiplet_load.push_back(0.3 + 0.6 * ((c * 7 + static_cast<int>(m) * 3) % 16) / 16.0 /
                                             (1.0 + 0.3 * static_cast<double>(q)));
        for (size_t u = 0; u < out.package.links.size(); ++u)
          r.link_util.push_back(static_cast<double>((u * 11 + m * 5) % 48) / 60.0 /
                                (1.0 + 0.15 * static_cast<double>(q)));
        if (q < 3)
          r.bottleneck = {{"link c1->c2", 300}, {"link c5->c6", 90}, {"compute c3", 60}, {"hbm c3", 30}};
        else
          r.bottleneck = {{"link c1->c2", 90}, {"compute c3", 250}, {"hbm c3", 140}};
        out.runs.push_back(r);
      }
    }
    for (const char* origin : {"recorded", "all"}) {
      for (const std::string& policy : policies) {
        for (const std::string& against : policies) {
          if (policy == against) continue;
          SummaryRow row;
          row.mode = mode;
          row.policy = policy;
          row.against = against;
          row.origin = origin;
          double product = 1;
          int n = 0;
          for (size_t m = 0; m < models.size(); ++m) {
            if (*origin == 'r' && m != 0) continue;
            Ps a = 0, b = 0;
            for (const RunResult& r : out.runs) {
              if (r.mode != mode || r.model != models[m]) continue;
              if (r.policy == policy) a = r.latency_ps;
              if (r.policy == against) b = r.latency_ps;
            }
            row.per_model[models[m]] = 1 - static_cast<double>(a) / static_cast<double>(b);
            product = static_cast<double>(a) / static_cast<double>(b);
            ++n;
          }
          row.geomean_reduction = n == 0 ? 0 : 1 - product;
          out.summary.push_back(row);
        }
      }
    }
  }
  out.manifest_json =
      "{\"version\": \"0.0.0\", \"seed\": 1, \"parameters\": {\"hcrmap\": {\"alpha\": 0.8}}, \"assumptions\": [\"bytes "
      "a "
      "weight: 1\", \"U_max = 1 a package and window\"]}";
  return out;
}

}  // namespace sojourn::testing
