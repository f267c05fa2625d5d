// SHA-256 through libcrypto: names inputs in manifests.
#pragma once
#include <string>
#include <string_view>

#include "sojourn/diagnostics.h"

namespace sojourn {

/// Lower-case hex digest of the bytes.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
/// Digest of a file, read in pieces. Fails with exit code 2 when it cannot be read.
[[nodiscard]] Result<std::string> sha256_file(const std::string& path);

}  // namespace sojourn
