// What the command line (and Python) call: one function a `sojourn trace` verb. Failures carry exit codes; nothing
// throws.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sojourn/params.h"
#include "trace/container.h"
#include "trace/export.h"
#include "trace/formats.h"
#include "trace/stats.h"
#include "trace/synth.h"

namespace sojourn {

using GivenParams = std::vector<std::pair<std::string, std::string>>;

struct ImportSummary {
  std::string path, sha256, format;
  bool loads = false;  ///< a counts-only format: written as a loads container, which is not a trace
  int layers = 0, experts = 0, top_k = 0;
  std::int64_t tokens = 0;  ///< loads: steps
  Diagnostics warnings;     ///< what was dropped, inferred or passed over
  [[nodiscard]] std::string json() const;
};
/// `sojourn trace import FORMAT IN... -o OUT.npz`; FORMAT may be "auto".
[[nodiscard]] Result<ImportSummary> import_trace(const std::string& format, const std::vector<std::string>& inputs,
                                                 const GivenParams& params, const std::string& out,
                                                 Compression compression = Compression::deflate);

/// `sojourn trace info FILE --json`: a container, or any file an importer recognises (nothing is written).
[[nodiscard]] Result<std::string> trace_info_json(const std::string& path);
/// The same as a table for people.
[[nodiscard]] Result<std::string> trace_info_text(const std::string& path);

/// `sojourn trace check FILE`: opens it, checks every id, and reports what is odd (warnings; errors are the failure).
[[nodiscard]] Result<Diagnostics> check_trace(const std::string& path);

/// `sojourn trace export FILE --format F -o OUT`; F is one of export_formats(). Gives the
/// SHA-256 of the file written.
[[nodiscard]] Result<std::string> export_trace(const std::string& path, const std::string& format,
                                               const std::string& out);

struct SynthSummary {
  std::string path, sha256;
  std::string details;  ///< JSON: knobs, and targets with residuals when fitted
};
/// `sojourn trace synth --set name=value... [--fit FILE] -o OUT`. `fit` = a trace, a loads file or "".
[[nodiscard]] Result<SynthSummary> synth_trace(const GivenParams& params, const std::string& fit, std::uint64_t seed,
                                               const std::string& out, Compression compression = Compression::deflate);

/// Loads of any file: EPLB CSV, expert-load.json, any counts format, a loads container, or a trace (summed). For
/// `plan`.
[[nodiscard]] Result<LoadData> read_loads(const std::string& path);

}  // namespace sojourn
