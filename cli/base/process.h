// Other programs, and files for them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace polyop::cli {

/// A folder that goes when the command ends. Throws Failure (kBadFile) if none can be made.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string File(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Runs a program without a shell, its standard output dropped. Throws Failure (kFailed) with `hint` if it fails, or
/// with `missing` if there is no such program.
void RunProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing);
/// The same, its standard output shown.
void ShowProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing);

}  // namespace polyop::cli
