// The verbs of `sojourn trace`, as functions.
#include "trace/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <new>

#include "base/hash.h"
#include "trace/export.h"
#include "trace/info.h"
#include "trace/json_text.h"
#include "trace/zip.h"

namespace sojourn {
namespace {

/// A file opened for reading: exactly one is set.
struct Opened {
  std::unique_ptr<Trace> trace;
  std::optional<LoadData> loads;
  Diagnostics warnings;
};

Result<Opened> open_any(const std::string& path) {
  Opened out;
  auto inputs = expand_inputs({path});
  if (!inputs) return tl::unexpected(inputs.error());
  const bool one = inputs->size() == 1;
  const std::string_view bytes = (*inputs)[0].bytes;
  const NpzKind kind = one ? npz_kind(bytes) : NpzKind::other;
  if (kind == NpzKind::trace) {
    auto t = open_trace(path);
    if (!t) return tl::unexpected(t.error());
    out.trace = std::move(*t);
    return out;
  }
  if (kind == NpzKind::loads) {
    auto l = open_loads(path);
    if (!l) return tl::unexpected(l.error());
    out.loads = std::move(*l);
    return out;
  }
  auto imported = import_inputs("auto", std::move(*inputs), {}, out.warnings);
  if (!imported) return tl::unexpected(imported.error());
  std::string hash;
  if (one) {
    auto h = sha256_file(path);
    if (!h) return tl::unexpected(h.error());
    hash = *h;
  }
  const std::string stem = std::filesystem::path(path).stem().string();
  TraceMeta& meta = imported->trace ? imported->trace->meta : imported->loads->meta;
  meta.name = stem;
  meta.sha256 = hash;
  if (imported->trace)
    out.trace = make_trace(std::move(*imported->trace));
  else
    out.loads = std::move(imported->loads);
  return out;
}

template <class F>
auto guarded(const std::string& path, F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return fail({path}, "", "out of memory", "use a smaller input", 3);
  } catch (const std::filesystem::filesystem_error& e) {
    return fail({path}, "", e.what(), "check the path and its permissions", 3);
  }
}

/// File names with the first 16 digits of their SHA-256, as the shared READMEs give them; long lists are shortened.
std::vector<std::string> source_list(const std::vector<InputFile>& inputs) {
  std::vector<std::string> out;
  for (const InputFile& f : inputs) {
    if (out.size() == 1000) {
      out.push_back(fmt::format("and {} more", inputs.size() - out.size()));
      break;
    }
    out.push_back(
        fmt::format("{} {}", f.folder.empty() ? f.name : f.folder + "/" + f.name, sha256_hex(f.bytes).substr(0, 16)));
  }
  return out;
}

}  // namespace

std::string ImportSummary::json() const {
  JsonText j;
  j.open('{');
  j.member("schema", "sojourn.trace_import/1");
  j.member("file", path);
  j.member("sha256", sha256);
  j.member("format", format);
  j.member("kind", loads ? "loads" : "trace");
  j.member("layers", layers);
  j.member("experts", experts);
  j.member("top_k", top_k);
  j.member(loads ? "steps" : "tokens", tokens);
  j.key("warnings");
  j.open('[');
  for (const Diagnostic& d : warnings.items()) j.value(d.text());
  j.close(']');
  j.close('}');
  return j.text();
}

Result<ImportSummary> import_trace(const std::string& format, const std::vector<std::string>& inputs,
                                   const GivenParams& params, const std::string& out, Compression compression) {
  return guarded(out, [&]() -> Result<ImportSummary> {
    if (out.empty()) return fail({"<command line>"}, "-o", "no output file given", "add -o OUT.npz");
    auto files = expand_inputs(inputs);
    if (!files) return tl::unexpected(files.error());
    ImportSummary s;
    const std::vector<InputFile> kept = *files;
    auto imported = import_inputs(format, std::move(*files), params, s.warnings);
    if (!imported) return tl::unexpected(imported.error());
    TraceMeta& m = imported->trace ? imported->trace->meta : imported->loads->meta;
    if (m.sources.empty()) m.sources = source_list(kept);
    s.path = out;
    s.format = m.format;
    s.layers = m.layers;
    s.experts = m.experts;
    s.top_k = m.top_k;
    if (imported->loads) {
      s.loads = true;
      s.tokens = imported->loads->steps;
      s.warnings.warning({out}, "",
                         "the format holds counts without token order: written as loads, which `compare` cannot replay",
                         "make a trace with `sojourn trace synth --fit " + out + "`");
    } else {
      s.tokens = m.tokens;
    }
    auto hash =
        imported->trace ? write_trace_as(*imported->trace, out, compression) : write_loads(*imported->loads, out);
    if (!hash) return tl::unexpected(hash.error());
    s.sha256 = *hash;
    return s;
  });
}

Result<std::string> trace_info_json(const std::string& path) {
  return guarded(path, [&]() -> Result<std::string> {
    auto o = open_any(path);
    if (!o) return tl::unexpected(o.error());
    return o->trace ? trace_info_document(*o->trace, path) : loads_info_document(*o->loads, path);
  });
}

Result<std::string> trace_info_text(const std::string& path) {
  return guarded(path, [&]() -> Result<std::string> {
    auto o = open_any(path);
    if (!o) return tl::unexpected(o.error());
    return o->trace ? trace_info_table(*o->trace) : loads_info_table(*o->loads);
  });
}

Result<Diagnostics> check_trace(const std::string& path) {
  return guarded(path, [&]() -> Result<Diagnostics> {
    auto o = open_any(path);
    if (!o) return tl::unexpected(o.error());
    Diagnostics out = o->warnings;
    const TraceMeta& m = o->trace ? o->trace->meta() : o->loads->meta;
    if (out.empty())
      for (const std::string& w : m.warnings) out.warning({path}, "", w);
    if (!o->trace) return out;
    if (m.origin == Origin::recorded && m.recorded_from.empty())
      out.warning({path}, "meta.recorded_from", "does not say what was recorded", "import with --set model=NAME");
    const auto sequence = o->trace->sequence_id();
    const auto position = o->trace->position();
    for (std::size_t i = 1; i < sequence.size(); ++i) {
      if (sequence[i] == sequence[i - 1] && position[i] <= position[i - 1]) {
        out.warning({path}, fmt::format("position[{}]", i), "positions of a sequence do not grow",
                    "order tokens by sequence and position");
        break;
      }
    }
    const auto phase = o->trace->phase();
    for (std::size_t i = 0; i < phase.size(); ++i) {
      if (phase[i] > 1) {
        out.warning({path}, fmt::format("phase[{}]", i), fmt::format("{} is neither 0 nor 1", phase[i]),
                    "write 0 for prompt tokens and 1 for generated ones");
        break;
      }
    }
    for (int l = 0; l < m.layers; ++l) {
      const auto weights = o->trace->weights(l);
      // binary16: an exponent of all ones is an infinity or no number, the sign bit a negative one (but for -0).
      const auto odd = std::find_if(weights.begin(), weights.end(),
                                    [](std::uint16_t w) { return (w & 0x7C00) == 0x7C00 || (w > 0x8000); });
      if (odd == weights.end()) continue;
      const auto at = static_cast<std::int64_t>(odd - weights.begin());
      out.warning({path}, fmt::format("weights[{}, {}, {}]", l, at / m.top_k, at % m.top_k),
                  (*odd & 0x7C00) == 0x7C00 ? "is not a finite number" : "is negative",
                  "write the router's weights after its softmax, or leave weights out");
      break;
    }
    return out;
  });
}

Result<std::string> export_trace(const std::string& path, const std::string& format, const std::string& out) {
  return guarded(path, [&]() -> Result<std::string> {
    auto o = open_any(path);
    if (!o) return tl::unexpected(o.error());
    if (auto ok = o->trace ? export_to(*o->trace, format, out) : export_to(*o->loads, format, out); !ok)
      return tl::unexpected(ok.error());
    return sha256_file(out);
  });
}

Result<SynthSummary> synth_trace(const GivenParams& params, const std::string& fit, std::uint64_t seed,
                                 const std::string& out, Compression compression) {
  return guarded(out, [&]() -> Result<SynthSummary> {
    if (out.empty()) return fail({"<command line>"}, "-o", "no output file given", "add -o OUT.npz");
    auto resolved = resolve(synth_params(), params, {"<command line>"}, "synth");
    if (!resolved) return tl::unexpected(resolved.error());
    ParamSet knobs = *resolved;
    std::string fitted, model, source;
    std::vector<std::string> sources;
    if (!fit.empty()) {
      auto o = open_any(fit);
      if (!o) return tl::unexpected(o.error());
      const TraceMeta& m = o->trace ? o->trace->meta() : o->loads->meta;
      const auto given = [&](const char* name) {
        for (const auto& [key, value] : params)
          if (key == name) return true;
        return false;
      };
      // The shape follows the file unless the user says otherwise.
      if (!given("layers")) knobs.set("layers", std::int64_t{m.layers});
      if (!given("experts")) knobs.set("experts", std::int64_t{m.experts});
      if (!given("top_k") && m.top_k > 0) knobs.set("top_k", std::int64_t{m.top_k});
      if (!given("tokens") && m.tokens > 0 && o->trace) knobs.set("tokens", m.tokens);
      if (!given("domains") && !m.domains.empty() && o->trace)
        knobs.set("domains", static_cast<std::int64_t>(m.domains.size()));
      if (o->trace && !given("length_mean")) {
        const TraceStats s = trace_stats(*o->trace);
        knobs.set("length_mean", std::max(1.0, s.length_mean));
      }
      if (o->loads && !o->loads->traffic)
        return fail({fit}, "", "these are prompt counts, not token loads", "fit to a trace or to token loads");
      const SynthTargets targets =
          o->trace ? SynthTargets::of(trace_stats(*o->trace)) : SynthTargets::of(load_stats(*o->loads));
      auto found = fit_synth(targets, knobs, seed);
      if (!found) return tl::unexpected(found.error());
      knobs = found->params;
      fitted = found->details;
      model = m.model;
      source = m.recorded_from.empty() ? m.model : m.recorded_from;
      sources = {fmt::format("{} {}", m.name, m.sha256.substr(0, 16))};
    }
    auto data = synthesise(knobs, seed);
    if (!data) return tl::unexpected(data.error());
    JsonText j;
    j.open('{');
    j.member("generator", "sojourn.synth/1");
    j.member("seed", seed);
    j.key("knobs");
    j.open('{');
    for (const auto& [name, value] : knobs.values()) {
      if (const auto* i = std::get_if<std::int64_t>(&value))
        j.member(name, *i);
      else if (const auto* d = std::get_if<double>(&value))
        j.member(name, *d);
    }
    j.close('}');
    if (!fitted.empty()) j.raw("calibration", fitted);
    j.close('}');
    data->meta.details = j.text();
    if (!fit.empty()) {
      data->meta.origin = Origin::calibrated;
      data->meta.model = model;
      data->meta.note += "; knobs fitted to the statistics of " +
                         (source.empty() ? std::filesystem::path(fit).filename().string() : source);
      data->meta.sources = sources;
    }
    auto hash = write_trace_as(*data, out, compression);
    if (!hash) return tl::unexpected(hash.error());
    return SynthSummary{out, *hash, data->meta.details};
  });
}

Result<LoadData> read_loads(const std::string& path) {
  return guarded(path, [&]() -> Result<LoadData> {
    auto o = open_any(path);
    if (!o) return tl::unexpected(o.error());
    return o->trace ? loads_of(*o->trace) : std::move(*o->loads);
  });
}

}  // namespace sojourn
