// SPDX-License-Identifier: Apache-2.0
// The Python environments that serve the program. They hold ONNX Runtime and packages of operators.
#pragma once

#include <filesystem>
#include <vector>

namespace polyop::cli {

/// Remembers `argv[0]`. An environment's bin/polyop may be a link to a program elsewhere, and the environment is the
/// one that was called. main() calls this before anything else.
void SetProgramName(const char* name);

/// Returns the folders that the program lies in: of the path that was called, then of the target of each link on the
/// way to the program's own file.
std::vector<std::filesystem::path> ProgramFolders();

/// Returns the folders of programs of the .venv environments in the folders above the program, the nearest first.
std::vector<std::filesystem::path> CheckoutEnvironments();

/// Returns the folders of Python packages in search order: of the environment that the program lies in, of the active
/// one, and of a .venv in the folders above the program.
const std::vector<std::filesystem::path>& SitePackages();

/// Returns the prefix that this program is installed in, the folder above its own.
std::filesystem::path InstalledPrefix();

}  // namespace polyop::cli
