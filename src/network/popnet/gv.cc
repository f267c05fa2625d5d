// Words, statements, then a check of the names.
//
//   graph: [strict] graph [name] '{' (statement [';'])* '}'; statement: node|edge|graph attributes, name '=' word,
//   name ('--' name)* attributes; attributes: ('[' (name ['=' word] [',' | ';'])* ']')*
//
// Assumption, source: gv.h.
#include "network/popnet/gv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

namespace sojourn::popnet {
namespace {

constexpr std::size_t kMostEdges = 1 << 17;
constexpr std::size_t kMostFindings = 20;

struct Word {
  enum Kind { end, name, mark } kind = end;
  std::string text;
  SourceSpan where;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& path) : text_(text), path_(path) { advance(); }
  const Word& word() const { return word_; }
  bool at(std::string_view mark) const { return word_.kind == Word::mark && word_.text == mark; }
  bool take(std::string_view mark) {
    if (!at(mark)) return false;
    advance();
    return true;
  }
  void advance() {
    skip_blanks();
    word_ = {Word::end, "", {path_, line_, column_}};
    if (i_ >= text_.size()) return;
    const char c = text_[i_];
    if (c == '"') return quoted();
    if (is_word(c) || (c == '-' && i_ + 1 < text_.size() && is_number(text_[i_ + 1]))) {
      word_.kind = Word::name;
      do word_.text += get();
      while (i_ < text_.size() && is_word(text_[i_]));
      return;
    }
    word_.kind = Word::mark;
    word_.text = get();
    if (c == '-' && i_ < text_.size() && (text_[i_] == '-' || text_[i_] == '>')) word_.text += get();
  }

 private:
  static bool is_number(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; }
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || static_cast<signed char>(c) < 0;
  }
  char get() {
    const char c = text_[i_++];
    ++column_;
    if (c == '\n') {
      ++line_;
      column_ = 1;
    }
    return c;
  }
  bool starts(std::string_view s) const { return text_.substr(i_, s.size()) == s; }
  void skip_blanks() {
    while (i_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[i_])) != 0) {
        get();
      } else if (starts("//") || (starts("#") && column_ == 1)) {
        while (i_ < text_.size() && text_[i_] != '\n') get();
      } else if (starts("/*")) {
        get();
        get();
        while (i_ < text_.size() && !starts("*/")) get();
        for (int n = 0; n < 2 && i_ < text_.size(); ++n) get();
      } else {
        return;
      }
    }
  }
  void quoted() {
    get();
    word_.kind = Word::name;
    while (i_ < text_.size() && text_[i_] != '"') {
      if (starts("\\\"")) get();
      word_.text += get();
    }
    if (i_ < text_.size()) get();
  }

  std::string_view text_;
  std::string path_;
  std::size_t i_ = 0;
  int line_ = 1, column_ = 1;
  Word word_;
};

struct Node {
  double period = 1;
  bool has_period = false;
  SourceSpan where;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : in_(text, path), path_(path) {}

  Result<GvGraph> parse(Diagnostics& notes) {
    if (in_.word().text == "strict") in_.advance();
    if (in_.word().text == "digraph") {
      wrong("", "digraph: links go both ways here", "write 'graph' and '--'");
    } else if (in_.word().text != "graph") {
      wrong("", in_.word().kind == Word::end ? "holds no graph" : "'" + in_.word().text + "': expected 'graph'",
            "begin with 'graph NAME {'");
    }
    if (problems_.has_errors()) return fail(std::move(problems_));
    in_.advance();
    if (in_.word().kind == Word::name) in_.advance();
    if (!in_.take("{")) wrong("", "expected '{'", "");
    while (!problems_.has_errors() && !in_.at("}")) {
      if (in_.word().kind == Word::end) {
        wrong("", "the graph does not end", "close it with '}'");
        break;
      }
      statement();
    }
    if (!problems_.has_errors()) {
      in_.advance();
      if (in_.word().kind != Word::end)
        wrong("", "'" + in_.word().text + "': text after the graph", "one graph a file");
    }
    if (problems_.has_errors()) return fail(std::move(problems_));
    return finish(notes);
  }

 private:
  using Attributes = std::map<std::string, Word>;

  void wrong(const std::string& key, const std::string& message, const std::string& remedy) {
    problems_.error(in_.word().where, key, message, remedy);
  }

  void statement() {
    if (in_.take(";")) return;
    if (in_.word().kind != Word::name) {
      wrong("", "'" + in_.word().text + "': expected a router, 'node', 'edge' or '}'", "");
      return;
    }
    const Word first = in_.word();
    in_.advance();
    if (first.text == "subgraph") {
      problems_.error(first.where, "subgraph", "is not read here", "write its edges into the graph itself");
    } else if (first.text == "node" || first.text == "edge" || first.text == "graph") {
      const Attributes a = attributes();
      if (first.text == "node") set_period(a, default_node_);
      if (first.text == "edge") set_weight(a, default_weight_, has_weight_);
    } else if (in_.take("=")) {
      if (in_.word().kind == Word::name)
        in_.advance();
      else
        wrong(first.text, "has no value", "");
    } else {
      chain(first);
    }
  }

  void chain(const Word& first) {
    std::vector<Word> names{first};
    while (in_.at("--") || in_.at("->")) {
      if (in_.at("->")) return wrong("", "'->': links go both ways here", "write '--'");
      in_.advance();
      if (in_.word().kind != Word::name)
        return wrong("", "'" + in_.word().text + "': expected a router after '--'", "");
      names.push_back(in_.word());
      in_.advance();
    }
    const Attributes a = attributes();
    for (const Word& n : names)
      nodes_.try_emplace(n.text, Node{default_node_.period, default_node_.has_period, n.where});
    if (names.size() == 1) return set_period(a, nodes_[first.text]);
    double weight = default_weight_;
    bool given = has_weight_;
    set_weight(a, weight, given);
    all_weighted_ = all_weighted_ && given;
    for (std::size_t i = 1; i < names.size(); ++i) {
      if (names[i].text == names[i - 1].text)
        problems_.error(names[i].where, names[i].text, "a link to itself", "join two routers");
      ends_.push_back({names[i - 1].text, names[i].text});
      weights_.push_back(weight);
    }
    if (ends_.size() > kMostEdges) wrong("", fmt::format("more than {} links", kMostEdges), "");
  }

  Attributes attributes() {
    Attributes out;
    while (in_.take("["))
      while (!in_.take("]")) {
        if (in_.take(",") || in_.take(";")) continue;
        if (in_.word().kind != Word::name) {
          wrong("",
                in_.word().kind == Word::end ? "attributes do not end" : "'" + in_.word().text + "': expected a name",
                "close them with ']'");
          return out;
        }
        const std::string key = in_.word().text;
        in_.advance();
        if (!in_.take("=")) continue;
        if (in_.word().kind != Word::name) {
          wrong(key, "has no value", "");
          return out;
        }
        out[key] = in_.word();
        in_.advance();
      }
    return out;
  }

  double number(const std::string& key, const Word& w, bool zero) {
    double v = 0;
    const auto r = std::from_chars(w.text.data(), w.text.data() + w.text.size(), v);
    if (r.ec == std::errc() && r.ptr == w.text.data() + w.text.size() && (zero ? v >= 0 : v > 0) && v <= 1e6) return v;
    problems_.error(w.where, key, "'" + w.text + "': not a number of cycles",
                    zero ? "give 0 to 1000000" : "give more than 0, at most 1000000");
    return 1;
  }
  void set_period(const Attributes& a, Node& node) {
    const auto i = a.find("pipeline_stage_delay");
    if (i == a.end()) return;
    node.period = number(i->first, i->second, false);
    node.has_period = true;
  }
  void set_weight(const Attributes& a, double& weight, bool& given) {
    const auto i = a.find("weight");
    if (i == a.end()) return;
    weight = number(i->first, i->second, true);
    given = true;
  }

  Result<GvGraph> finish(Diagnostics& notes) {
    GvGraph out;
    if (nodes_.empty()) return fail({path_, 0, 0}, "", "the graph has no routers", "name them 0, 1, 2 ...");
    if (nodes_.size() > static_cast<std::size_t>(kMostRouters))
      return fail({path_, 0, 0}, "", fmt::format("{} routers", nodes_.size()), fmt::format("at most {}", kMostRouters));
    out.routers = static_cast<int>(nodes_.size());
    out.period.resize(nodes_.size());
    std::map<std::string, int> index;
    bool all_periods = true, ones = true;
    for (const auto& [name, node] : nodes_) {
      int v = -1;
      const auto r = std::from_chars(name.data(), name.data() + name.size(), v);
      if (r.ec != std::errc() || std::to_string(v) != name || v < 0 || v >= out.routers) {
        if (problems_.items().size() < kMostFindings)
          problems_.error(node.where, name, fmt::format("routers of this graph must be named 0 to {}", out.routers - 1),
                          "number them without gaps");
        continue;
      }
      index[name] = v;
      out.order.push_back(v);
      out.period[static_cast<std::size_t>(v)] = node.period;
      all_periods = all_periods && node.has_period;
      ones = ones && node.period == 1;
    }
    if (problems_.has_errors()) return fail(std::move(problems_));
    for (std::size_t i = 0; i < ends_.size(); ++i)
      out.edges.push_back({index[ends_[i].first], index[ends_[i].second], weights_[i]});
    if (!all_periods)
      notes.warning({path_, 0, 0}, "pipeline_stage_delay", "not given for every router: 1 cycle",
                    "popnet needs it; write node[pipeline_stage_delay=1]");
    if (!ones)
      notes.warning({path_, 0, 0}, "pipeline_stage_delay",
                    "is not 1 everywhere: popnet itself stops at its first idle time",
                    "results cannot be compared with it");
    if (!all_weighted_)
      notes.warning({path_, 0, 0}, "weight", "not given for every link: 0 cycles, as in popnet",
                    "write edge[weight=1]");
    return out;
  }

  Reader in_;
  std::string path_;
  Diagnostics problems_;
  Node default_node_;
  double default_weight_ = 0;
  bool has_weight_ = false, all_weighted_ = true;
  std::map<std::string, Node> nodes_;
  std::vector<std::pair<std::string, std::string>> ends_;
  std::vector<double> weights_;
};

}  // namespace

Result<GvGraph> read_gv(std::string_view text, const std::string& path, Diagnostics& notes) {
  return Parser(text, path).parse(notes);
}

}  // namespace sojourn::popnet
