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
    const fs::path file = fs::absolute(folder.empty() ? "." : folder, error) / ProgramFile(program);
    if (fs::is_regular_file(file, error) && MayExecute(file)) return file;
  }
  return {};
}

namespace {

void Run(const std::vector<std::string>& words, Shown shown, const std::string& hint, const std::string& missing) {
  const int status = Execute(words, shown);
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

int ExitStatusOf(const std::vector<std::string>& words) { return Execute(words, Shown::kNothing); }

std::string OutputOf(const std::vector<std::string>& words) {
  std::string output;
  if (Execute(words, Shown::kErrors, &output) != 0) {
    throw Failure(kFailed, "this program failed: " + Join(words, " "));
  }
  return output;
}

}  // namespace polyop::cli
