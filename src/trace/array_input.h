// A NumPy array as an importer sees it: from a .npy file, or from a member of a foreign .npz.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/inputs.h"
#include "trace/npy.h"

namespace sojourn {

struct ArrayInput {
  NpyHeader header;
  std::shared_ptr<std::string> owned;  ///< inflated member, when it had to be
  std::string_view data;               ///< elements (points into the file or into `owned`)
  /// Element at an index, whatever the order in memory.
  [[nodiscard]] std::uint64_t at(std::initializer_list<std::uint64_t> index) const;
};

/// Header only, for sniffing; shape empty when there is none. `wanted` = member of a .npz ("" = the likely one).
[[nodiscard]] Result<NpyHeader> array_header(const InputFile& f, const std::string& wanted);
[[nodiscard]] Result<ArrayInput> read_array(const InputFile& f, const std::string& wanted);
[[nodiscard]] bool is_integer(const NpyHeader& h);

}  // namespace sojourn
