// popnet model: its random numbers are the C library's, its grids and graphs, the .gv and packet readers.
#include <doctest/doctest.h>

#include <cstdlib>

#include "network/popnet/bench.h"
#include "network/popnet/draws.h"
#include "network/popnet/gv.h"

using namespace sojourn;
using namespace sojourn::popnet;

TEST_CASE("draws of a seed are those of the C library, stepped or skipped") {
  for (const unsigned seed : {0U, 1U, 7U, 123456789U, 4000000000U}) {
    srandom(seed);
    Draws draws(seed);
    for (int i = 0; i < 1000; ++i) REQUIRE(draws.next() == static_cast<std::uint32_t>(random()));
    draws.skip(70000);  // far enough for the jump
    for (int i = 0; i < 70000; ++i) random();
    for (int i = 0; i < 100; ++i) REQUIRE(draws.next() == static_cast<std::uint32_t>(random()));
    draws.skip(13);
    for (int i = 0; i < 13; ++i) random();
    CHECK(draws.next() == static_cast<std::uint32_t>(random()));
  }
}

TEST_CASE("a .gv file gives links in order, defaults for what follows, and names in the order of text") {
  Diagnostics notes;
  const auto g = read_gv(
      "// comment\nstrict graph \"a b\" {\n edge[weight=2]; node [pipeline_stage_delay=1, energy=3];\n"
      "0--1--2 /* chain */ [weight=5]\n 2--3\n rankdir=LR\n 4;5;6;7;8;9; 10 -- 3\n}\n",
      "x.gv", notes);
  REQUIRE(g.has_value());
  CHECK(g->routers == 11);
  REQUIRE(g->edges.size() == 4);
  CHECK(g->edges[1].a == 1);
  CHECK(g->edges[1].delay == 5);
  CHECK(g->edges[2].delay == 2);
  CHECK(g->order[2] == 10);  // "10" before "2"
  CHECK(notes.empty());
}

TEST_CASE("a .gv file that is wrong is refused with line and column") {
  const auto says = [](const char* text, const char* what) {
    Diagnostics notes;
    const auto g = read_gv(text, "x.gv", notes);
    REQUIRE_FALSE(g.has_value());
    INFO(g.error().diagnostics.text());
    CHECK(g.error().diagnostics.text().find(what) != std::string::npos);
  };
  says("", "holds no graph");
  says("digraph g { 0 -> 1 }", "x.gv:1:1");
  says("graph g {\n 0 -> 1 }", "x.gv:2:4");
  says("graph g { 0 -- 1", "does not end");
  says("graph g { 0 -- 2 }", "must be named 0 to 1");
  says("graph g { a -- b }", "must be named");
  says("graph g { 0 -- 0 }", "itself");
  says("graph g { 0 -- 1 [weight=fast] }", "x.gv:1:26: weight: 'fast'");
  says("graph g { node[pipeline_stage_delay=0] 0 -- 1 }", "more than 0");
  says("graph g { subgraph s { 0 -- 1 } }", "subgraph");
  says("graph g { 0 -- }", "expected a router");
  says("graph g { }", "no routers");
  says("graph g { 0 -- 1 } graph h { 0 -- 1 }", "one graph a file");
}

TEST_CASE("a packet list that is wrong is refused with line, column and field") {
  const auto says = [](const char* text, const BenchFormat& format, const char* what) {
    const auto b = read_bench(text, "b", format);
    REQUIRE_FALSE(b.has_value());
    INFO(b.error().diagnostics.text());
    CHECK(b.error().diagnostics.text().find(what) != std::string::npos);
  };
  const BenchFormat mesh{2, 4, false}, proto{1, 9, true};
  says("", mesh, "holds no packets");
  says("\n \n", mesh, "holds no packets");
  says("0 0 0 1 1 5\n1 0 0 1 1\n", mesh, "b:2:10: flits: 5 fields, expected 6");
  says("0 0 0 1 1 5 7\n", mesh, "b:1:13");
  says("0 0 4 1 1 5\n", mesh, "b:1:5: source_y: '4': out of range");
  says("0 -1 0 1 1 5\n", mesh, "b:1:3: source_x");
  says("0 0 0 1 1 0\n", mesh, "b:1:11: flits: '0'");
  says("0 0 0 1 1 99999999999999999999999\n", mesh, "flits");
  says("1e400 0 0 1 1 1\n", mesh, "b:1:1: time");
  says("nan 0 0 1 1 1\n", mesh, "b:1:1: time: 'nan': not a number");
  says("0 0 0 1 x 1\n", mesh, "b:1:9: destination_y: 'x': not a number");
  says("0 0 0 9 1 0\n", proto, "destination: '9'");
  CHECK(read_bench("9 0 0 1 1 5\r\n3 0 0 1 1 5\n", "b", mesh)->sorted == false);
}

TEST_CASE("packets that wait for one another are told apart from those that are late") {
  // A ring, every packet two thirds round, one VC: the shortest paths close a circle.
  std::vector<Edge> edges;
  std::vector<int> order;
  for (int r = 0; r < 5; ++r) {
    edges.push_back({r, (r + 1) % 5, 1.0});
    order.push_back(r);
  }
  PopnetConfig c = graph(5, edges, std::vector<double>(5, 1.0), order);
  c.vcs = 1;
  c.in_buffer = 2;
  std::vector<Packet> packets;
  for (int r = 0; r < 5; ++r) packets.push_back({0, r, (r + 2) % 5, 40, -1});
  const Run run = simulate(c, packets, 1e12);
  CHECK(run.ending == Ending::blocked);
  CHECK(run.arrivals.empty());
  CHECK(run.steps < 1000);
  CHECK(simulate(c, {{0, 0, 2, 400, -1}}, 100).ending == Ending::limit);
}

TEST_CASE("idle time costs nothing, long messages little") {
  const PopnetConfig c = grid(8, Routing::mesh);
  const Run run = simulate(c, {{0, 0, 63, 5, -1}, {1e14, 0, 63, 100000, -1}}, 1e15);
  REQUIRE(run.arrivals.size() == 2);
  CHECK(run.arrivals[1].time - 1e14 == 70 + 99999);
  CHECK(run.steps < 101000);
}
