#include "cli/base/environments.h"

#include <algorithm>
#include <cstdlib>

namespace polyop::cli {
namespace fs = std::filesystem;
namespace {

void AddEnvironment(const fs::path& root, std::vector<fs::path>* found) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "lib", error)) {
    if (entry.path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* folder : {"site-packages", "dist-packages"}) {
      const fs::path site = entry.path() / folder;
      if (fs::is_directory(site, error) && std::find(found->begin(), found->end(), site) == found->end()) {
        found->push_back(site);
      }
    }
  }
}

std::vector<fs::path> FindSitePackages() {
  std::vector<fs::path> found;
  // The environment in whose bin/ the program was called, which may be a link to elsewhere.
  if (const char* environment = std::getenv("VIRTUAL_ENV")) AddEnvironment(environment, &found);
  std::error_code error;
  if (const char* self = std::getenv("_"); self != nullptr && fs::path(self).filename() == "polyop") {
    AddEnvironment(fs::absolute(self, error).parent_path().parent_path(), &found);
  }
  const fs::path prefix = InstalledPrefix();
  AddEnvironment(prefix, &found);
  for (fs::path folder = prefix / "bin"; folder.has_relative_path(); folder = folder.parent_path()) {
    AddEnvironment(folder / ".venv", &found);
  }
  return found;
}

}  // namespace

const std::vector<fs::path>& SitePackages() {
  static const std::vector<fs::path> kFound = FindSitePackages();
  return kFound;
}

fs::path InstalledPrefix() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
}

}  // namespace polyop::cli
