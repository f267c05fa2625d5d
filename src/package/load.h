// Packages from TOML: presets (packages/*.toml) and files of the user's. See packages/hcrmap-table1.toml for a
// commented example of every section.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "package/topologies.h"
#include "sojourn/diagnostics.h"
#include "sojourn/package.h"
#include "sojourn/params.h"

namespace sojourn {

/// Guards for untrusted text.
struct PackageLimits {
  int chiplets = kMaxChiplets;           ///< compute plus IO
  std::int64_t route_entries = 1 << 26;  ///< links of all routes together (256 MiB)
};

/// `name_or_path`: a preset name ("hcrmap-table1", looked up as <dir>/<name>.toml in `search_dirs`, first hit wins) or
/// a path (anything with a '/' or ending in ".toml"). Errors, all of a file in one pass: unknown preset (with the known
/// ones), unreadable, not TOML, unknown or missing keys, wrong units, bounds, unknown chiplets, unreachable chiplets.
/// Warnings are appended to `warnings` when given.
[[nodiscard]] Result<Package> load_package(const std::string& name_or_path, const std::vector<std::string>& search_dirs,
                                           Diagnostics* warnings = nullptr);
/// The same from text; `name` stands for the file in findings.
[[nodiscard]] Result<Package> parse_package(std::string_view text, const std::string& name,
                                            Diagnostics* warnings = nullptr, const PackageLimits& limits = {});

/// Presets of the search directories: name and path, sorted by name; a name in an earlier directory hides later ones.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> list_packages(
    const std::vector<std::string>& search_dirs);

/// The keys of a package file, by section: what `sojourn describe package` prints and what the loader checks with.
struct PackageSection {
  std::string name;  ///< "topology", "memory", ...; "" for top-level keys
  std::string text;
  bool repeated = false;  ///< [[name]]
  std::vector<Param> params;
};
[[nodiscard]] const std::vector<PackageSection>& package_sections();
/// The same as one flat list with dotted names ("memory.banks"), topology parameters included
/// ("topology.mesh.width").
[[nodiscard]] std::vector<Param> package_params();

}  // namespace sojourn
