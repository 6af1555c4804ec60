// SPDX-License-Identifier: Apache-2.0
#include "cli/base/process.h"

#include <cstdlib>
#include <sstream>

#include "cli/base/failure.h"
#include "cli/base/text.h"
#include "platform/program.h"

namespace polyop::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() : path_(CreateTemporaryFolder()) {
  if (path_.empty()) {
    std::error_code error;
    throw Failure(kBadFile, "cannot create a temporary folder in '" + fs::temp_directory_path(error).string() + "'");
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

fs::path FindOnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  std::error_code error;
  for (std::string folder; std::getline(folders, folder, kListSeparator);) {
    if (folder.empty()) continue;  // it means the current folder, where a model may lie next to programs
    const fs::path file = fs::absolute(folder, error) / ProgramFile(program);
    if (fs::is_regular_file(file, error) && MayExecute(file)) return file;
  }
  return {};
}

namespace {

// Like platform's Execute, but finds the program itself: Windows would search the current folder first.
int Start(std::vector<std::string> words, Shown shown, std::string* output = nullptr) {
  if (!fs::path(words.front()).has_parent_path()) {
    const fs::path found = FindOnPath(words.front());
    if (found.empty()) return kNoProgram;
    words.front() = found.string();
  }
  return Execute(words, shown, output);
}

void Run(const std::vector<std::string>& words, Shown shown, const std::string& hint, const std::string& missing) {
  const int status = Start(words, shown);
  if (status == 0) return;
  if (status == kNoProgram) throw Failure(kFailed, "there is no program '" + words.front() + "'", missing);
  throw Failure(kFailed, "this program failed: " + Join(words, " "), hint);
}

}  // namespace

void RunProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing) {
  Run(words, Shown::kErrors, hint, missing);
}

void ShowProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing) {
  Run(words, Shown::kAll, hint, missing);
}

int ExitStatusOf(const std::vector<std::string>& words) { return Start(words, Shown::kNothing); }

std::string OutputOf(const std::vector<std::string>& words) {
  std::string output;
  if (Start(words, Shown::kErrors, &output) != 0) {
    throw Failure(kFailed, "this program failed: " + Join(words, " "));
  }
  return output;
}

}  // namespace polyop::cli
