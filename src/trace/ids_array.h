// Expert ids in a 3-d array, with tokens or layers first: shared by the plain and the vLLM array formats.
#pragma once
#include "trace/formats.h"

namespace sojourn {

/// Imports [layers, tokens, k] (`tokens_first` false) or [tokens, layers, k]; one file is one sequence.
[[nodiscard]] Result<Imported> import_ids(const std::vector<InputFile>& files, const ParamSet& params,
                                          Diagnostics& warnings, const std::string& format, bool tokens_first);
/// Shape of a 3-d integer array, or empty.
[[nodiscard]] std::vector<std::uint64_t> ids_shape(const InputFile& f);

}  // namespace sojourn
