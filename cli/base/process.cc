#include "cli/base/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/base/failure.h"
#include "cli/base/text.h"

namespace polyop::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "polyop-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Failure(kBadFile, "no temporary folder can be made: " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

namespace {

void Run(const std::vector<std::string>& words, bool show, const std::string& hint, const std::string& missing) {
  constexpr int kNoProgram = 127;  // as shells say it
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!show && std::freopen("/dev/null", "w", stdout) == nullptr) _exit(126);
    execvp(arguments[0], arguments.data());
    _exit(kNoProgram);
  }
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) {
    if (WEXITSTATUS(status) == 0) return;
    if (WEXITSTATUS(status) == kNoProgram) {
      throw Failure(kFailed, "there is no program '" + words.front() + "'", missing);
    }
  }
  throw Failure(kFailed, "this program failed: " + Join(words, " "), hint);
}

}  // namespace

void RunProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing) {
  Run(words, false, hint, missing);
}

void ShowProgram(const std::vector<std::string>& words, const std::string& hint, const std::string& missing) {
  Run(words, true, hint, missing);
}

}  // namespace polyop::cli
