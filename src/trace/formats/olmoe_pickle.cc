// OLMoE routing analysis pickles. expert_counts/: a list of Counters {expert: tokens} for layers 0, 7 and 15.
// expert_counts_crosslayer/: a list of Counters {(expert in the earlier, in the later layer): count} for layers 0-7,
// 7-15, pairing choices of equal rank. One file is one domain, one step. Source: allenai/OLMoE.
#include <fmt/format.h>

#include <filesystem>

#include "trace/formats.h"
#include "trace/pickle.h"

namespace sojourn {
namespace {

using K = PickleValue::Kind;

int layer_number(std::size_t index, std::size_t count) {
  static constexpr int kPublished[] = {0, 7, 15};
  return count == 3 ? kPublished[index] : static_cast<int>(index);
}

bool whole(const PickleValue* v) { return v != nullptr && v->is(K::integer); }

struct Source {
  std::string domain;
  Pickle pickle;
  bool pairs = false;
  SourceSpan where;
};

Status add_counts(LoadBuilder& b, const Source& s, std::int64_t step) {
  const auto& layers = s.pickle.root->items;
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (const auto& [key, value] : layers[l]->members) {
      std::string why = "a key or count is not a whole number";
      const bool good = s.pairs ? key != nullptr && key->is(K::tuple) && key->items.size() == 2 &&
                                      whole(key->items[0]) && whole(key->items[1]) && whole(value)
                                : whole(key) && whole(value);
      if (!good) return fail(s.where, fmt::format("[{}]", l), why, "expected Counters of experts");
      const auto count = static_cast<double>(value->integer);
      bool ok = true;
      if (!s.pairs) {
        ok = b.add(step, layer_number(l, layers.size()), key->integer, count, why);
      } else {  // marginals: the earlier layer from each Counter, the later one from the last
        ok = b.add(step, layer_number(l, layers.size() + 1), key->items[0]->integer, count, why);
        if (ok && l + 1 == layers.size())
          ok = b.add(step, layer_number(l + 1, layers.size() + 1), key->items[1]->integer, count, why);
      }
      if (!ok) return fail(s.where, fmt::format("[{}]", l), why, "");
    }
  return {};
}

void add_transitions(LoadData& out, const Source& s) {
  const auto& layers = s.pickle.root->items;
  const auto e = static_cast<std::size_t>(out.experts);
  for (std::size_t l = 0; l < layers.size() && static_cast<int>(l) + 1 < out.layers; ++l) {
    if (out.transitions.size() <= l)
      out.transitions.push_back({static_cast<int>(l), static_cast<int>(l) + 1, std::vector<double>(e * e, 0.0)});
    for (const auto& [key, value] : layers[l]->members) {
      if (key == nullptr || !key->is(K::tuple) || key->items.size() != 2 || !whole(key->items[0]) ||
          !whole(key->items[1]) || !whole(value))
        continue;
      const std::int64_t from = key->items[0]->integer, to = key->items[1]->integer;
      if (from >= 0 && to >= 0 && from < out.experts && to < out.experts)
        out.transitions[l].counts[static_cast<std::size_t>(from) * e + static_cast<std::size_t>(to)] +=
            static_cast<double>(value->integer);
    }
  }
}

Result<Imported> import_olmoe(const std::vector<InputFile>& files, const ParamSet&, Diagnostics& warnings) {
  LoadBuilder b("olmoe-pickle");
  std::vector<Source> sources;
  std::string model;
  bool counts = false;
  for (const InputFile& f : files) {
    auto p = read_pickle(f.bytes, f.path);
    if (!p) return tl::unexpected(p.error());
    if (!p->root->is(K::list) || p->root->items.empty() || p->root->items.size() > 64)
      return fail(f.span(), "", "not a list of Counters", "expected files of OLMoE's routing analysis");
    Source s{f.name.substr(0, f.name.rfind('.')), std::move(*p), false, f.span()};
    for (const PickleValue* v : s.pickle.root->items) {
      if (v == nullptr || !v->is(K::dict) || v->members.empty())
        return fail(f.span(), "", "not a list of Counters", "expected files of OLMoE's routing analysis");
      s.pairs = v->members[0].first != nullptr && v->members[0].first->is(K::tuple);
    }
    const std::string parent = std::filesystem::path(f.path).parent_path().parent_path().filename().string();
    if (!model.empty() && parent != model)
      return fail(f.span(), "", fmt::format("files of two models ({} and {})", model, parent),
                  "import one model at a time");
    model = parent;
    counts = counts || !s.pairs;
    sources.push_back(std::move(s));
  }
  const bool mistral = model == "mistral";
  if (mistral || model == "olmoe") {
    b.meta.recorded_from = mistral ? "Mixtral-8x7B-v0.1" : "OLMoE-1B-7B-0924";
    b.meta.model = mistral ? "mixtral-8x7b" : "olmoe-1b-7b";
    b.declare_experts(mistral ? 8 : 64);
    b.meta.top_k = mistral ? 2 : 8;
  }
  b.meta.note = "prefill in blocks of 2048 tokens; layers 0, 7 and 15 only; a step is a text domain";
  std::int64_t step = 0;
  for (const Source& s : sources) {
    if (counts && s.pairs) continue;
    if (auto ok = add_counts(b, s, step); !ok) return tl::unexpected(ok.error());
    b.meta.domains.push_back(s.domain);
    b.name_step(step++, s.domain);
  }
  auto out = b.finish(files[0].span());
  if (out)
    for (const Source& s : sources)
      if (s.pairs && out->experts <= 4096) add_transitions(*out, s);
  return as_loads(std::move(out), warnings);
}

int sniff(const InputFile& f) {
  if (f.bytes.size() < 2 || f.bytes[0] != '\x80') return 0;
  return has_all(f.head().substr(0, 200), {"collections", "Counter"}) ? 95 : 0;
}

}  // namespace

void register_formats_olmoe_pickle(FormatRegistry& registry) {
  registry.add({"olmoe-pickle", "OLMoE expert count pickles by text domain; no token order", {}},
               {sniff, import_olmoe, true});
}

}  // namespace sojourn
