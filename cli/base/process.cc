#include "cli/base/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "cli/base/failure.h"
#include "cli/base/text.h"

namespace polyop::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "polyop-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Failure(kBadFile, "cannot create a temporary folder: " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

fs::path FindOnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  std::error_code error;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::absolute(folder.empty() ? "." : folder, error) / program;
    if (fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

namespace {

constexpr int kNoProgram = 127;  // as in shells

enum class Shown { kAll, kErrors, kNothing };

std::vector<char*> ArgumentsOf(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

// Returns the exit status, or -1 if the program was ended by a signal.
int Execute(const std::vector<std::string>& words, Shown shown) {
  const std::vector<char*> arguments = ArgumentsOf(words);
  const pid_t child = fork();
  if (child == 0) {
    if (shown != Shown::kAll) {
      const int null = open("/dev/null", O_WRONLY);
      if (null < 0 || dup2(null, STDOUT_FILENO) < 0) _exit(126);
      if (shown == Shown::kNothing && dup2(null, STDERR_FILENO) < 0) _exit(126);
    }
    execvp(arguments[0], arguments.data());
    _exit(kNoProgram);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

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
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) throw Failure(kFailed, "this program failed: " + Join(words, " "));
  const std::vector<char*> arguments = ArgumentsOf(words);
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(ends[1], STDOUT_FILENO) < 0) _exit(126);
    close(ends[0]);
    close(ends[1]);
    execvp(arguments[0], arguments.data());
    _exit(kNoProgram);
  }
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    output.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    throw Failure(kFailed, "this program failed: " + Join(words, " "));
  }
  return output;
}

void Become(const std::vector<std::string>& words) { execvp(words.front().c_str(), ArgumentsOf(words).data()); }

}  // namespace polyop::cli
