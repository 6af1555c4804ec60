// SPDX-License-Identifier: Apache-2.0
// Other programs, and temporary files for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace polyop::cli {

/// A temporary folder, removed by the destructor.
class TemporaryFolder {
 public:
  /// Throws Failure (kBadFile) if no folder can be created.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Returns the path of a program that PATH has, or "". Ignores empty parts of PATH, which mean the current folder.
std::filesystem::path FindOnPath(const std::string& program);

/// Runs a program without a shell and drops its standard output. Throws Failure (kFailed): with `hint` if it fails,
/// with `missing` if there is no such program.
void RunProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing);
/// Like RunProgram, but shows the standard output.
void ShowProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing);

/// Runs a program and drops all that it prints. Returns its exit status, 127 if there is no such program, or -1 if a
/// signal ended it.
int ExitStatusOf(const std::vector<std::string>& words);

/// Runs a program and returns what it prints on standard output. Throws Failure (kFailed) if it fails.
std::string OutputOf(const std::vector<std::string>& words);

}  // namespace polyop::cli
