// SPDX-License-Identifier: Apache-2.0
#include "platform/program.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <cerrno>
#include <cstdlib>

namespace polyop {

namespace fs = std::filesystem;

fs::path OwnProgramFile() {
  std::error_code error;
#ifdef __APPLE__
  char path[4096];
  uint32_t size = sizeof path;
  return _NSGetExecutablePath(path, &size) == 0 ? fs::canonical(path, error) : fs::path();
#else
  return fs::read_symlink("/proc/self/exe", error);
#endif
}

void PrepareTerminal() {}
bool IsTerminal(int output) { return isatty(output) != 0; }
int TerminalColumns() {
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

uint64_t MachineMemory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

bool MayWrite(const fs::path& path) { return access(path.c_str(), W_OK) == 0; }
bool MayExecute(const fs::path& path) { return access(path.c_str(), X_OK) == 0; }

fs::path CreateTemporaryFolder() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "polyop-XXXXXX").string();
  return mkdtemp(name.data()) == nullptr ? fs::path() : fs::path(name);
}

std::string ProgramFile(const std::string& name) { return name; }

std::string ProcessName() {
  constexpr size_t kMaxName = 256;
  char name[kMaxName] = {};
  gethostname(name, kMaxName - 1);
  return std::string(name) + "-" + std::to_string(getpid());
}

bool SyncFile(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY);
  if (file < 0) return false;
  const bool good = fsync(file) == 0;
  const int error = errno;
  close(file);
  errno = error;
  return good;
}

void SetVariable(const std::string& name, const std::string& value) { setenv(name.c_str(), value.c_str(), 1); }

std::vector<std::string> OpeningCommand(const std::string& file) {
#ifdef __APPLE__
  return {"open", file};
#else
  return {"xdg-open", file};
#endif
}

namespace {

std::vector<char*> ArgumentsOf(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

// Runs in the child process, until the program replaces it. The pipe, if it is open, gets the standard output.
[[noreturn]] void StartHere(char* const* arguments, Shown shown, const int (&pipe)[2]) {
  constexpr int kNotStarted = 126;
  const int null = shown == Shown::kAll ? -1 : open("/dev/null", O_WRONLY);
  if (shown != Shown::kAll && null < 0) _exit(kNotStarted);
  const int output = pipe[1] >= 0 ? pipe[1] : null;
  if (output >= 0 && dup2(output, STDOUT_FILENO) < 0) _exit(kNotStarted);
  for (const int end : pipe) {
    if (end >= 0) close(end);
  }
  if (shown == Shown::kNothing && dup2(null, STDERR_FILENO) < 0) _exit(kNotStarted);
  execvp(arguments[0], arguments);
  _exit(kNoProgram);
}

}  // namespace

int Execute(const std::vector<std::string>& words, Shown shown, std::string* output) {
  int ends[2] = {-1, -1};  // to read from, to write to
  if (output != nullptr && pipe(ends) != 0) return -1;
  const std::vector<char*> arguments = ArgumentsOf(words);
  const pid_t child = fork();
  if (child == 0) StartHere(arguments.data(), shown, ends);
  if (output != nullptr) {
    close(ends[1]);
    char buffer[4096];
    for (ssize_t count = 0; child > 0 && (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
      output->append(buffer, static_cast<size_t>(count));
    }
    close(ends[0]);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

void Become(const std::vector<std::string>& words) { execvp(words.front().c_str(), ArgumentsOf(words).data()); }

}  // namespace polyop
