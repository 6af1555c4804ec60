// SPDX-License-Identifier: Apache-2.0
// The program's own file, terminals, and other programs. Only programs link this; paths and words are UTF-8.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace polyop {

// The separator of PATH and similar variables, and the folder of the programs of a Python environment.
#ifdef _WIN32
inline constexpr char kListSeparator = ';';
inline constexpr const char* kProgramsFolder = "Scripts";
#else
inline constexpr char kListSeparator = ':';
inline constexpr const char* kProgramsFolder = "bin";
#endif

/// Call it first in main(): a terminal then shows UTF-8 and colors.
void PrepareTerminal();

/// Returns the file of this program, or an empty path if the system does not say it.
std::filesystem::path OwnProgramFile();

/// Returns true if the output is a terminal. 1 is the standard output, 2 that of errors.
bool IsTerminal(int output);

/// Returns the columns of the terminal that is the standard output; 0 if it is none.
int TerminalColumns();

/// Returns the bytes of memory that this machine has.
uint64_t MachineMemory();

bool MayWrite(const std::filesystem::path& path);
bool MayExecute(const std::filesystem::path& path);

/// Creates a folder with a new name in the folder for temporary files. Returns an empty path if this is impossible.
std::filesystem::path CreateTemporaryFolder();

/// Returns the file name of a program: "python", "python.exe".
std::string ProgramFile(const std::string& name);

/// Returns "MACHINE-PROCESS", which names this process on machines that share a folder.
std::string ProcessName();

/// Waits until the content of a file is on the disk. Returns false, and sets errno, if that fails.
bool SyncFile(const std::filesystem::path& path);

/// Sets an environment variable of this process and of the programs that it starts.
void SetVariable(const std::string& name, const std::string& value);

/// Returns the command that opens a file as a double click does.
std::vector<std::string> OpeningCommand(const std::string& file);

/// Parts of a started program's output that the user sees.
enum class Shown { kAll, kErrors, kNothing };

inline constexpr int kNoProgram = 127;  // as in shells

/// Runs a program without a shell. Returns its exit status, kNoProgram if there is no such program, or -1 if it did not
/// end normally. Its standard output goes to `output` if that is not null, as text whose lines end with \n.
int Execute(const std::vector<std::string>& words, Shown shown, std::string* output = nullptr);

/// Replaces this process by a program; where the system cannot, runs it and ends with its exit status. Returns only if
/// the program cannot be started.
void Become(const std::vector<std::string>& words);

}  // namespace polyop
