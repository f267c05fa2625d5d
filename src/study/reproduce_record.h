// A RunResult as text and back, without loss: what the results store holds. The run time is not part of it, so that a
// study put together from stored runs has the bytes of an undisturbed one.
#pragma once
#include <optional>
#include <string>

#include "sojourn/results.h"

namespace sojourn {

[[nodiscard]] std::string encode_run(const RunResult& run);
/// Nothing when the text is not of this form (another version wrote it): the run is done again.
[[nodiscard]] std::optional<RunResult> decode_run(const std::string& text);

}  // namespace sojourn
