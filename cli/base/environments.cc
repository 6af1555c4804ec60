// SPDX-License-Identifier: Apache-2.0
#include "cli/base/environments.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cli/base/process.h"
#include "platform/program.h"

namespace polyop::cli {
namespace fs = std::filesystem;
namespace {

std::string& ProgramName() {
  static std::string name;
  return name;
}

// Returns the path that was called, or the program's own file if the name says nothing.
fs::path CalledPath() {
  const std::string& name = ProgramName();
  std::error_code error;
  if (name.empty()) return OwnProgramFile();
  if (fs::path(name).has_parent_path()) return fs::absolute(name, error).lexically_normal();
  const fs::path found = FindOnPath(name);
  return found.empty() ? OwnProgramFile() : found;
}

template <class T>
void AddOnce(const T& item, std::vector<T>* list) {
  if (std::find(list->begin(), list->end(), item) == list->end()) list->push_back(item);
}

void AddSitePackages(const fs::path& environment, std::vector<fs::path>* found) {
  std::error_code error;
  const fs::path on_windows = environment / "Lib" / "site-packages";
  if (fs::is_directory(on_windows, error)) AddOnce(on_windows, found);
  for (const auto& entry : fs::directory_iterator(environment / "lib", error)) {
    if (entry.path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* folder : {"site-packages", "dist-packages"}) {
      if (fs::is_directory(entry.path() / folder, error)) AddOnce(entry.path() / folder, found);
    }
  }
}

}  // namespace

void SetProgramName(const char* name) { ProgramName() = name == nullptr ? "" : name; }

std::vector<fs::path> ProgramFolders() {
  constexpr int kMaxLinks = 40;  // as in Linux
  std::vector<fs::path> folders;
  std::error_code error;
  fs::path path = CalledPath();
  for (int i = 0; i < kMaxLinks; ++i) {
    AddOnce(path.parent_path(), &folders);
    if (!fs::is_symlink(path, error)) break;
    path = (path.parent_path() / fs::read_symlink(path, error)).lexically_normal();
  }
  AddOnce(OwnProgramFile().parent_path(), &folders);
  return folders;
}

std::vector<fs::path> CheckoutEnvironments() {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::path folder = OwnProgramFile().parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    const fs::path programs = folder / ".venv" / kProgramsFolder;
    if (fs::is_directory(programs, error)) found.push_back(programs);
  }
  return found;
}

const std::vector<fs::path>& SitePackages() {
  static const std::vector<fs::path> kFound = [] {
    std::vector<fs::path> found;
    for (const fs::path& folder : ProgramFolders()) AddSitePackages(folder.parent_path(), &found);
    if (const char* active = std::getenv("VIRTUAL_ENV")) AddSitePackages(active, &found);
    for (const fs::path& folder : CheckoutEnvironments()) AddSitePackages(folder.parent_path(), &found);
    return found;
  }();
  return kFound;
}

fs::path InstalledPrefix() { return OwnProgramFile().parent_path().parent_path(); }

}  // namespace polyop::cli
