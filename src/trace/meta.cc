// The container's `meta` document. Written by hand so that the key order, and so the bytes, never change.
#include <fmt/format.h>

#include "trace/container.h"
#include "trace/json_reader.h"
#include "trace/json_text.h"

namespace sojourn {

const char* origin_name(Origin o) {
  switch (o) {
    case Origin::recorded:
      return "recorded";
    case Origin::surrogate:
      return "surrogate";
    case Origin::synthetic:
      return "synthetic";
    case Origin::calibrated:
      return "calibrated";
  }
  return "recorded";
}

std::string meta_to_json(const TraceMeta& m, const std::string& schema) {
  JsonText j;
  j.open('{');
  j.member("schema", schema);
  j.member("model", m.model);
  j.member("layers", m.layers);
  j.member("experts", m.experts);
  j.member("top_k", m.top_k);
  j.member("tokens", m.tokens);
  j.member("origin", origin_name(m.origin));
  j.member("recorded_from", m.recorded_from);
  j.list("serves", m.serves);
  j.list("domains", m.domains);
  j.list("sequence_domain", m.sequence_domain);
  j.list("layer_ids", m.layer_ids);
  j.member("format", m.format);
  if (m.training.rfind('{', 0) == 0)
    j.raw("training", m.training);
  else
    j.member("training", m.training);
  j.list("sources", m.sources);
  j.member("note", m.note);
  j.list("warnings", m.warnings);
  if (!m.details.empty()) j.raw("details", m.details);
  j.close('}');
  return j.text();
}

std::optional<Failure> meta_from_json(const std::string& text, const std::string& path, TraceMeta& m) {
  JsonReader r(text, path + ":meta");
  const auto words = [&](std::vector<std::string>& out) {
    if (r.peek() == JsonReader::Kind::string) {
      out.emplace_back();
      return r.string(out.back());
    }
    if (r.peek() != JsonReader::Kind::array) return r.skip();
    return r.array([&] {
      std::string s;
      if (!(r.peek() == JsonReader::Kind::object   ? r.raw(s)
            : r.peek() == JsonReader::Kind::string ? r.string(s)
                                                   : r.skip()))
        return false;
      out.push_back(std::move(s));
      return true;
    });
  };
  const auto word = [&](std::string& out) { return r.peek() == JsonReader::Kind::string ? r.string(out) : r.skip(); };
  // Records keep their JSON text.
  const auto word_or_record = [&](std::string& out) {
    return r.peek() == JsonReader::Kind::object ? r.raw(out) : word(out);
  };
  const auto numbers = [&](std::vector<int>& out) {
    return r.array([&] {
      int v = 0;
      if (!r.index(v, 1 << 30)) return false;
      out.push_back(v);
      return true;
    });
  };
  std::string schema, origin;
  r.object([&](const std::string& key) {
    if (r.null()) return true;
    if (key == "schema") return r.string(schema);
    if (key == "model") return word(m.model);
    if (key == "layers") return r.index(m.layers, 1 << 20);
    if (key == "experts") return r.index(m.experts, 65535);
    if (key == "top_k") return r.index(m.top_k, 65535);
    if (key == "tokens") return r.integer(m.tokens);
    if (key == "origin") return word(origin);
    if (key == "recorded_from") return word(m.recorded_from);
    if (key == "serves") return words(m.serves);
    if (key == "domains") return words(m.domains);
    if (key == "sequence_domain") return numbers(m.sequence_domain);
    if (key == "layer_ids") return numbers(m.layer_ids);
    if (key == "format") return word(m.format);
    if (key == "training") {
      bool flag = false;
      if (r.peek() != JsonReader::Kind::boolean) return word_or_record(m.training);
      if (!r.boolean(flag)) return false;
      m.training = flag ? "yes" : "no";
      return true;
    }
    if (key == "sources") return words(m.sources);
    if (key == "note") return word(m.note);
    if (key == "warnings") return words(m.warnings);
    if (key == "details") return r.raw(m.details);
    return r.skip();
  });
  if (r.ok()) r.finish();
  if (r.ok() && schema != "sojourn.trace/1" && schema != "sojourn.loads/1")
    r.error(fmt::format("schema '{}' is not known", schema), "this build reads sojourn.trace/1 and sojourn.loads/1");
  if (r.ok() && !origin.empty()) {
    bool known = false;
    for (Origin o : {Origin::recorded, Origin::surrogate, Origin::synthetic, Origin::calibrated})
      if (origin == origin_name(o)) {
        m.origin = o;
        known = true;
      }
    if (!known)
      r.error(fmt::format("origin '{}' is not known", origin), "one of recorded, surrogate, synthetic, calibrated");
  }
  for (int d : m.sequence_domain)
    if (r.ok() && d >= static_cast<int>(m.domains.size()))
      r.error(fmt::format("sequence_domain {} with {} domains", d, m.domains.size()), "indices run from 0");
  if (!r.ok()) return r.failure();
  return std::nullopt;
}

}  // namespace sojourn
