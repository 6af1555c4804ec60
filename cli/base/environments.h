// Where Python packages lie that may serve the program: ONNX Runtime, and packages of operators.
#pragma once

#include <filesystem>
#include <vector>

namespace polyop::cli {

/// Folders of packages, in the order in which they are looked into: of the active environment, of the one whose program
/// this is, and of a .venv in the folders above it.
const std::vector<std::filesystem::path>& SitePackages();

/// The prefix that this program is installed in: the folder above its own.
std::filesystem::path InstalledPrefix();

}  // namespace polyop::cli
