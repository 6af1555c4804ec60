// SPDX-License-Identifier: Apache-2.0
#include "platform/program.h"

#include <io.h>
#include <windows.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace polyop {

namespace fs = std::filesystem;

namespace {

std::wstring Wide(std::string_view text) {
  const int size = static_cast<int>(text.size());
  std::wstring wide(static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), size, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), size, wide.data(), static_cast<int>(wide.size()));
  return wide;
}

// Quotes a word so that the started program's C runtime splits the command line into the same words: backslashes are
// doubled before a quotation mark.
std::wstring Quoted(const std::wstring& word) {
  if (!word.empty() && word.find_first_of(L" \t\n\v\"") == std::wstring::npos) return word;
  std::wstring quoted = L"\"";
  size_t backslashes = 0;
  for (const wchar_t c : word) {
    if (c == L'"') quoted.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    quoted += c;
  }
  return quoted.append(backslashes, L'\\') + L'"';
}

std::wstring CommandLine(const std::vector<std::string>& words) {
  std::wstring line;
  for (const std::string& word : words) {
    if (!line.empty()) line += L' ';
    line += Quoted(Wide(word));
  }
  return line;
}

// Closes a handle that is open.
class Handle {
 public:
  explicit Handle(HANDLE handle = nullptr) : handle_(handle) {}
  ~Handle() { Close(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  HANDLE get() const { return handle_; }
  HANDLE* address() { return &handle_; }
  void Close() {
    if (handle_ != nullptr && handle_ != INVALID_HANDLE_VALUE) CloseHandle(handle_);
    handle_ = nullptr;
  }

 private:
  HANDLE handle_;
};

}  // namespace

fs::path OwnProgramFile() {
  constexpr DWORD kMaxPath = 32768;
  std::wstring path(kMaxPath, L'\0');
  path.resize(GetModuleFileNameW(nullptr, path.data(), kMaxPath));
  return path;
}

void PrepareTerminal() {
  SetConsoleOutputCP(CP_UTF8);
  for (const DWORD name : {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE}) {
    const HANDLE output = GetStdHandle(name);
    DWORD mode = 0;
    if (GetConsoleMode(output, &mode)) SetConsoleMode(output, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
}

bool IsTerminal(int output) { return _isatty(output) != 0; }
int TerminalColumns() {
  CONSOLE_SCREEN_BUFFER_INFO info = {};
  return GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info) ? info.dwSize.X : 0;
}

uint64_t MachineMemory() {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}

bool MayWrite(const fs::path& path) {
  constexpr int kWrite = 2;
  return _waccess(path.c_str(), kWrite) == 0;
}

bool MayExecute(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

fs::path CreateTemporaryFolder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  constexpr int kAttempts = 1000;
  for (int i = 0; i < kAttempts && !error; ++i) {
    LARGE_INTEGER time;
    QueryPerformanceCounter(&time);
    const std::string name =
        "polyop-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(time.QuadPart + i);
    if (fs::create_directory(folder / name, error)) return folder / name;
  }
  return {};
}

std::string ProgramFile(const std::string& name) { return name + ".exe"; }

std::string ProcessName() {
  DWORD size = MAX_COMPUTERNAME_LENGTH + 1;
  char name[MAX_COMPUTERNAME_LENGTH + 1] = {};
  GetComputerNameA(name, &size);
  return std::string(name) + "-" + std::to_string(GetCurrentProcessId());
}

bool SyncFile(const fs::path& path) {
  const Handle file(
      CreateFileW(path.c_str(), GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING, 0, nullptr));
  if (file.get() != INVALID_HANDLE_VALUE && FlushFileBuffers(file.get())) return true;
  errno = EIO;
  return false;
}

void SetVariable(const std::string& name, const std::string& value) { _putenv_s(name.c_str(), value.c_str()); }

std::vector<std::string> OpeningCommand(const std::string& file) {
  return {"rundll32", "url.dll,FileProtocolHandler", file};
}

int Execute(const std::vector<std::string>& words, Shown shown, std::string* output) {
  SECURITY_ATTRIBUTES inherited = {sizeof(SECURITY_ATTRIBUTES), nullptr, TRUE};
  Handle null(CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited,
                          OPEN_EXISTING, 0, nullptr));
  Handle from, to;
  if (output != nullptr) {
    if (!CreatePipe(from.address(), to.address(), &inherited, 0)) return -1;
    SetHandleInformation(from.get(), HANDLE_FLAG_INHERIT, 0);
  }
  STARTUPINFOW start = {};
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  start.hStdOutput = output != nullptr ? to.get() : shown == Shown::kAll ? GetStdHandle(STD_OUTPUT_HANDLE) : null.get();
  start.hStdError = shown == Shown::kNothing ? null.get() : GetStdHandle(STD_ERROR_HANDLE);
  PROCESS_INFORMATION process = {};
  std::wstring line = CommandLine(words);
  if (!CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr, &start, &process)) {
    const DWORD error = GetLastError();
    return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ? kNoProgram : -1;
  }
  const Handle child(process.hProcess), thread(process.hThread);
  to.Close();
  if (output != nullptr) {
    char buffer[4096];
    for (DWORD count = 0; ReadFile(from.get(), buffer, sizeof buffer, &count, nullptr) && count > 0;) {
      output->append(buffer, count);
    }
    // Programs on Windows end lines with \r\n.
    size_t kept = 0;
    for (size_t i = 0; i < output->size(); ++i) {
      if ((*output)[i] != '\r' || output->compare(i, 2, "\r\n") != 0) (*output)[kept++] = (*output)[i];
    }
    output->resize(kept);
  }
  DWORD status = 0;
  WaitForSingleObject(child.get(), INFINITE);
  return GetExitCodeProcess(child.get(), &status) ? static_cast<int>(status) : -1;
}

void Become(const std::vector<std::string>& words) {
  const int status = Execute(words, Shown::kAll);
  if (status != kNoProgram && status != -1) std::exit(status);
}

}  // namespace polyop
