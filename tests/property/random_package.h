// Random small packages through the real loader, and rapidcheck helpers. Runs repeat: the default is
// RC_PARAMS="seed=1 max_success=400", and the environment overrides it (RC_PARAMS="max_success=100000" for new seeds).
#pragma once
#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstdlib>

#include "../theory/kit.h"
#include "base/rng.h"
#include "package/load.h"

namespace kit {

inline const int kCasesByDefault = setenv("RC_PARAMS", "seed=1 max_success=400", 0);

/// Inclusive; shrinks towards lo.
inline int pick(int lo, int hi) { return *rc::gen::inRange(lo, hi + 1); }

/// Mesh, torus, tree or custom; one to three tiers, DRAM on IO chiplets or on the compute chiplets. `room` is the least
/// number of bytes of the far tier's banks.
inline Package random_package(Bytes room) {
  const int kind = pick(0, 3), n = pick(1, 6);
  std::string t = "name = \"random\"\n[topology]\n";
  int compute = n;
  switch (kind) {
    case 0:
    case 1: {
      const int w = pick(1, 3), h = pick(1, 2);
      compute = w * h;
      t += fmt::format("kind = \"{}\"\nwidth = {}\nheight = {}\n", kind == 0 ? "mesh" : "torus", w, h);
      break;
    }
    case 2:
      t += fmt::format("kind = \"tree\"\nchiplets = {}\narity = {}\n", n, pick(1, 3));
      break;
    default:
      t += fmt::format("kind = \"custom\"\nchiplets = {}\nrouting = \"table\"\n", n);
  }
  t += fmt::format(
      "[chiplet]\ncores = {}\nclock = \"1 GHz\"\nmacs_per_cycle = {}\ntile_tokens = {}\nenergy_per_mac = \"7 fJ\"\n",
      pick(1, 4), pick(1, 8), pick(1, 16));
  t += fmt::format("[noc]\nports = {}\nenergy = \"100 fJ/B\"\n", pick(1, 4));
  t +=
      fmt::format("[d2d]\nbandwidth = \"{} GB/s\"\nenergy = \"300 fJ/B\"\ndistance = \"{} mm\"\noverhead = \"{} ps\"\n",
                  pick(1, 64), pick(0, 20), pick(0, 3000));
  if (kind == 3)  // a ring
    for (int c = 0; compute > 1 && c < (compute == 2 ? 1 : compute); ++c)
      t += fmt::format("[[link]]\nfrom = \"c{}\"\nto = \"c{}\"\nbandwidth = \"{} GB/s\"\n", c, (c + 1) % compute,
                       pick(1, 64));
  const int io = pick(0, 2);
  for (int i = 0; i < io; ++i)
    t += fmt::format("[[io]]\nname = \"io{}\"\nattach = [\"c{}\"]\n", i, pick(0, compute - 1));
  const auto memory = [&](const char* tier, const char* at, Bytes capacity, int latency) {
    const int banks = pick(1, 3);
    t += fmt::format(
        "[[memory]]\ntier = \"{}\"\nat = \"{}\"\nbanks = {}\ncapacity = \"{} B\"\nbandwidth = \"{} GB/s\"\n"
        "latency = \"{} ps\"\nenergy = \"10 fJ/B\"\n",
        tier, at, banks, capacity, pick(1, 64), latency);
  };
  if (pick(0, 3) > 0) memory("sram", "compute", pick(1, 2000), pick(0, 2000));
  if (pick(0, 2) > 0) memory("hbm", "compute", pick(1, 4000), pick(0, 5000));
  memory("dram", io > 0 ? "io" : "compute", room, pick(0, 9000));
  t += fmt::format("[control]\ngate_energy = \"11 fJ\"\nmigration_energy = \"13 fJ\"\ngate_overhead = \"{} ps\"\n",
                   pick(0, 5000));
  t += fmt::format("[stream]\nchunk = \"{} B\"\nweight_tiles = {}\nprefetch_depth = {}\n", pick(16, 512), pick(1, 9),
                   pick(1, 3));
  const Result<Package> p = parse_package(t, "random.toml");
  if (!p) FAIL(p.error().diagnostics.text() << "\n" << t);
  return *p;
}

/// A random location some compute chiplet may use; -1 as bank set if the tier is not there.
inline Location random_location(const Package& p, Rng& rng) {
  Location at;
  at.chiplet = static_cast<int>(rng.below(p.compute_count));
  at.tier = static_cast<Tier>(rng.below(kTiers));
  const auto visible = p.visible(at.tier, at.chiplet);
  at.bank_set = visible.empty() ? -1 : visible[rng.below(visible.size())];
  return at;
}
inline Location usable_location(const Package& p, Rng& rng) {
  for (;;)
    if (const Location at = random_location(p, rng); at.bank_set >= 0) return at;
}

}  // namespace kit
