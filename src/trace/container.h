// The trace container: a plain NumPy .npz (see include/sojourn/trace.h), and its sister for loads without token order
// (`loads` float64 [steps, layers, experts], schema "sojourn.loads/1").
#pragma once
#include <optional>
#include <string>

#include "sojourn/trace.h"
#include "trace/loads.h"

namespace sojourn {

enum class Compression { deflate, stored };

/// write_trace with a choice: stored members are mapped in place by readers, deflated ones are smaller.
[[nodiscard]] Result<std::string> write_trace_as(const TraceData& data, const std::string& path,
                                                 Compression compression);
[[nodiscard]] Result<std::string> write_loads(const LoadData& data, const std::string& path);
[[nodiscard]] Result<LoadData> open_loads(const std::string& path);
/// What an .npz holds, from its member names only.
enum class NpzKind { trace, loads, other };
[[nodiscard]] NpzKind npz_kind(std::string_view bytes);
/// Opens a container already in memory (`path` is for messages): the fuzzer's way in. No SHA-256.
[[nodiscard]] Result<std::unique_ptr<Trace>> open_trace_bytes(std::string_view bytes, const std::string& path);

/// `meta` as JSON with a stable key order, and back. Unknown keys are ignored.
[[nodiscard]] std::string meta_to_json(const TraceMeta& meta, const std::string& schema);
[[nodiscard]] std::optional<Failure> meta_from_json(const std::string& text, const std::string& path, TraceMeta& meta);

}  // namespace sojourn
