// Makespan dispatch: the exact loads of a layer shared among its live replicas so that the fullest resource is done
// soonest, in the spirit of TEMPO (arXiv 2608.13057; ours in what it counts and how it searches).
//
//   machines   compute of chiplet c, bank set b, link u
//   items      (expert, segment). Replicas hold runs of the expert's slices; where no run crosses a boundary the
//              expert falls apart into segments, each of which every token needs once
//   options    of an item: ways to run its whole segment on live replicas. With equal runs every replica is one; where
//              runs differ, replicas that partition the segment form one together (each in one option, older first)
//   charges    c: (launch [activated] + tile ceil(n / tile) token_s(c)) share       share = slices / kSlices
//              b: [activated] share S / BW_b         u: [activated] share S / B_u on the way from set b to c,
//                                                       and d / B_u a token each on the ways there and back
//   minimise   max over machines of the sum of their charges; then the next fullest machine, and so on
//
// This is a makespan problem with fixed charges (an activated replica streams its weights whatever it computes), so
// neither levelling tokens nor counting activated replicas solves it. Steps:
//   seed       items by descending work, tile by tile to the option whose fullest machine stays lowest; a few rounds
//   refine     the fullest machine hands on tiles or whole shares, along a chain of items if the next machine is full
//              (Ford-Fulkerson on machines); where nothing helps, the next fullest machine is taken, down to 0.9 of it
//   search     branch and bound over tile splits of the items around the fullest machine, at most `nodes` nodes; exact
//              when these are all items and the nodes suffice
//   close      replicas whose tokens fit elsewhere at no cost are not woken
// Which tokens an option gets: those with sources nearest to it (hops there and back); a full link may exchange them.
// Splits are in whole tiles of an option but for one, as a broken tile costs as much as a whole one.
//
// Assumptions: those of cost.h. Bounded work (`evaluations`, `nodes`), so that the time of a call is bounded; scratch
// is kept, so that a call allocates nothing once it has seen the largest layer. Deterministic; ties go to fewer hops,
// then the older replica, lower expert, lower machine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policy/cost.h"
#include "policy/dispatch.h"

namespace sojourn {

struct MakespanSettings {
  double launch_s = 0;     ///< fixed compute charge of an activated replica
  int evaluations = 2000;  ///< moves tried in `refine`
  int nodes = 1000;        ///< nodes of `search`
  int neighbourhood = 12;  ///< items of `search`
};

class MakespanDispatcher {
 public:
  explicit MakespanDispatcher(MakespanSettings settings = {}) : s_(settings) {}
  void assign(const CostModel& cost, const DirectoryView& directory, const LayerTask& task,
              std::vector<Assignment>& out);

  /// Of the last layer: seconds of every machine (chiplets, bank sets, links) and the largest of them.
  [[nodiscard]] std::span<const double> load() const { return load_; }
  [[nodiscard]] double time() const;
  [[nodiscard]] int nodes_used() const { return nodes_used_; }
  [[nodiscard]] int evaluations_used() const { return evaluations_used_; }

 private:
  struct Charge {
    int machine = 0;
    double fixed = 0, tile = 0;
  };
  struct Part {
    int replica = 0, chiplet = 0;
  };
  struct Option {
    int item = 0;
    int first_charge = 0, charges = 0;
    int first_part = 0, parts = 0;
    int tokens = 0;  ///< given to it now
    std::int64_t hops = 0;
  };
  struct Item {
    int expert = 0, tokens = 0;
    int first_option = 0, options = 0;
    int first_x = 0;  ///< x_[first_x + group * options + option]
  };
  struct On {  ///< an option that charges a machine
    int option = 0, charge = 0;
  };
  struct Move {
    int item = 0, from = 0, to = 0, tokens = 0;
  };
  struct Node {  ///< of the chains: the moves up to here overfill `machine`
    int parent = -1, machine = 0, depth = 0;
    Move move{};
  };
  struct Shifted {
    int from = 0, to = 0, source = 0, tokens = 0;  ///< from, to: indices into x_
    int option_from = 0, option_to = 0;
  };

  // makespan.cc: the problem of a layer and what comes out
  void build(const DirectoryView& directory, const LayerTask& task);
  void add_expert(const DirectoryView& directory, const LayerTask& task, int e);
  void add_item(const LayerTask& task, int e, int first_option);
  void add_option(const DirectoryView& directory, std::span<const int> replicas);
  void charge(int first, int machine, double fixed, double tile);
  void lay_out();
  void index_machines();
  void fill(const LayerTask& task, int item);
  void settle_links(const LayerTask& task);
  void emit(const LayerTask& task, std::vector<Assignment>& out);

  // makespan_search.cc
  void seed();
  bool pour(int item);
  void refine();
  bool relieve(int machine);
  bool relieve_link(int machine);
  [[nodiscard]] int half_gap(int a, int b, int machine, double tile) const;
  void search();
  void choose_neighbourhood(int machine);
  void branch(size_t depth, int option, int left);
  [[nodiscard]] bool hopeless(size_t depth) const;
  void close();
  void change(const Option& o, int before, int after);
  void move(const Move& m);
  bool settle(std::span<const Move> moves, int machine, double limit);
  void shift(const Move& m);
  void shift_group(const Move& m, int group, int tokens);
  void unshift(size_t to);
  void add_tokens(const Option& o, int source, double tokens);
  void add_item_tokens(const Item& item, int sign);
  [[nodiscard]] bool links_below(int machine, double limit) const;
  [[nodiscard]] double raised(const Move& m, int& above, int& which, double limit) const;
  [[nodiscard]] double level(const Option& o, int before, int after) const;
  [[nodiscard]] int fullest(bool skip_frozen) const;
  [[nodiscard]] double peak_link() const;
  [[nodiscard]] int hops_between(const Option& o, int source) const;

  [[nodiscard]] int tiles(int tokens) const { return (tokens + tile_ - 1) / tile_; }
  [[nodiscard]] std::span<const Charge> charges(const Option& o) const {
    return {charges_.data() + o.first_charge, static_cast<size_t>(o.charges)};
  }
  [[nodiscard]] std::span<const Part> parts(const Option& o) const {
    return {parts_.data() + o.first_part, static_cast<size_t>(o.parts)};
  }
  [[nodiscard]] Option& option(const Item& i, int o) { return options_[static_cast<size_t>(i.first_option + o)]; }
  [[nodiscard]] std::span<const int> both_ways(int s, int c) const {
    const size_t i = static_cast<size_t>(s) * static_cast<size_t>(chiplets_) + static_cast<size_t>(c);
    return {way_.data() + way_first_[i], static_cast<size_t>(way_first_[i + 1] - way_first_[i])};
  }

  MakespanSettings s_;
  const CostModel* cost_ = nullptr;
  const LayerTask* task_ = nullptr;
  int chiplets_ = 0, sets_ = 0, links_ = 0, tile_ = 16;
  double slowest_ = 0;  ///< seconds of one token's activation on the slowest link
  ExpertGroups groups_;
  std::vector<double> load_;  ///< [machine]
  std::vector<Item> items_;
  std::vector<int> open_;  ///< items with several options, by descending work
  std::vector<Option> options_;
  std::vector<Charge> charges_;
  std::vector<Part> parts_;
  std::vector<int> x_;  ///< tokens by (item, group, option)
  std::vector<int> on_first_;
  std::vector<On> on_;                ///< by machine
  std::vector<int> way_, way_first_;  ///< links there and back between chiplets
  std::vector<std::int64_t> flow_;    ///< [source][chiplet] tokens
  std::vector<double> token_link_s_;  ///< [link]
  std::vector<Node> nodes_;
  std::vector<int> seen_;
  int stamp_ = 0;
  std::vector<std::uint8_t> frozen_;
  std::vector<Shifted> log_;
  std::vector<std::int64_t> keys_;
  std::vector<Move> path_;
  std::vector<int> left_, room_, dealt_, run_, used_;
  std::vector<double> work_, before_;  ///< before_: link loads before a move
  int evaluations_used_ = 0, nodes_used_ = 0;
  // search
  std::vector<int> chosen_, machines_, by_item_, best_tokens_, kept_tokens_, kept_x_;
  std::vector<double> tile_left_, fixed_left_;  ///< least compute and stream seconds of the chosen items not yet set
  double best_ = 0, target_ = 0;
  bool improved_ = false, links_matter_ = false;
};

}  // namespace sojourn
