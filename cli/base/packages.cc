// SPDX-License-Identifier: Apache-2.0
#include "cli/base/packages.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "cli/base/environments.h"
#include "core/library.h"
#include "kernels/cpu/simd.h"
#include "platform/library.h"
#include "platform/program.h"

namespace polyop::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kGroup = "[polyop.operators]";

std::string Stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

// Folders of libraries by the name of the package. insert() keeps the first of a name.
using Folders = std::map<std::string, fs::path>;

// Adds entry points of the group. The libraries of "my_ops = some.module" are in some/module/lib.
void AddEntryPoints(const fs::path& file, const fs::path& site, Folders* found) {
  std::ifstream stream(file);
  bool inside = false;
  for (std::string line; std::getline(stream, line);) {
    line = Stripped(line);
    const size_t equals = line.find('=');
    if (line.starts_with("[")) {
      inside = line == kGroup;
    } else if (inside && equals != std::string::npos) {
      std::string module = Stripped(std::string_view(line).substr(equals + 1));
      std::replace(module.begin(), module.end(), '.', '/');
      found->insert({Stripped(std::string_view(line).substr(0, equals)), site / module / "lib"});
    }
  }
}

void AddFolder(const fs::path& folder, Folders* found) {
  std::error_code error;
  bool any = false;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string(), end = Concat("_onnxruntime", kLibrarySuffix);
    if (!file.starts_with(kLibraryPrefix) || !file.ends_with(end)) continue;
    const std::string name = file.substr(kLibraryPrefix.size(), file.size() - kLibraryPrefix.size() - end.size());
    if (name == LibraryName()) continue;
    found->insert({name, fs::absolute(folder)});
    any = true;
  }
  if (!any) Warn("POLYOP_OPERATORS: there is no library of operators for ONNX Runtime in " + folder.string());
}

Folders FindFolders() {
  Folders found;
  if (const char* named = std::getenv("POLYOP_OPERATORS")) {
    std::istringstream folders(named);
    for (std::string folder; std::getline(folders, folder, kListSeparator);) {
      if (!folder.empty()) AddFolder(folder, &found);
    }
  }
  std::error_code error;
  for (const fs::path& site : SitePackages()) {
    for (const auto& entry : fs::directory_iterator(site, error)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".dist-info") AddEntryPoints(path / "entry_points.txt", site, &found);
    }
  }
  return found;
}

template <class Function>
bool Find(void* library, const char* symbol, Function** function) {
  *function = reinterpret_cast<Function*>(FindFunction(library, symbol));
  return *function != nullptr;
}

// Returns nullopt and warns if the library cannot be used.
std::optional<Package> Load(const std::string& name, const fs::path& folder) {
  const fs::path file = folder / LibraryFile(name + "_onnxruntime");
  std::string error;
  void* const library = LoadSharedLibrary(file, &error);
  if (library == nullptr) {
    Warn(Concat("the operators of '", name, "' are not loaded: ", error));
    return std::nullopt;
  }
  int (*version)() = nullptr;
  if (!Find(library, "polyop_sdk_version", &version) || version() != kSdkVersion) {
    Warn(Concat("the operators of '", name, "' were built for version ",
                version == nullptr ? "none" : std::to_string(version()),
                " of polyop's SDK, and this polyop has version ", kSdkVersion,
                ": build them again with this polyop, by `pip install .` in their project, or install the ",
                "polyop that they were built with"));
    return std::nullopt;
  }
  Package package;
  package.name = name;
  package.folder = folder;
  const char* (*catalogue)() = nullptr;
  if (!Find(library, "polyop_catalogue", &catalogue) || !Find(library, "RegisterCustomOps", &package.register_ops) ||
      !Find(library, "polyop_use_reference_kernels", &package.use_reference_kernels) ||
      !Find(library, "polyop_force_isa", &package.force_isa) ||
      !Find(library, "polyop_resolve_node", &package.resolve_node)) {
    Warn(Concat("the operators of '", name, "' are not loaded: ", file.string(), " was not built with polyop's SDK"));
    return std::nullopt;
  }
  package.catalogue = catalogue();
  return package;
}

}  // namespace

const std::vector<Package>& Packages() {
  static const std::vector<Package> kPackages = [] {
    std::vector<Package> loaded;
    for (const auto& [name, folder] : FindFolders()) {
      if (std::optional<Package> package = Load(name, folder)) loaded.push_back(std::move(*package));
    }
    return loaded;
  }();
  return kPackages;
}

Status ForceIsaEverywhere(const std::string& name) {
  POLYOP_RETURN_IF_ERROR(ForceIsa(name));
  for (const Package& package : Packages()) {
    if (package.force_isa(name.c_str()) == 0) {
      return InvalidArgument("the operators of '", package.name, "' have no kernels for the instruction set '", name,
                             "'");
    }
  }
  return Status::Ok();
}

void Warn(const std::string& text) { std::cerr << "polyop: warning: " << text << "\n"; }

}  // namespace polyop::cli
