#include "cli/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "cli/base/failure.h"
#include "platform/program.h"

namespace polyop::cli {
namespace fs = std::filesystem;

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw Failure(kBadFile, "'" + path + "' does not exist");
  if (fs::is_directory(path, error)) throw Failure(kBadFile, "'" + path + "': expected a file, got a directory");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Failure(kBadFile, "'" + path + "' cannot be opened: " + std::strerror(errno));
  const std::streamoff size = file.tellg();
  if (size <= 0) throw Failure(kBadFile, "'" + path + "' is empty");
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) {
    throw Failure(kBadFile, "'" + path + "' cannot be read to its end");
  }
  return bytes;
}

void WriteFile(const std::string& path, const void* data, size_t size) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (file) file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!file.flush()) {
    throw Failure(kBadFile, "'" + path + "' cannot be written: " + std::strerror(errno),
                  "does its folder exist, and may you write there?");
  }
}

void PrepareOutput(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Failure(kBadFile, "output '" + path + "' cannot be written: " + why);
  };
  std::error_code error;
  if (path.empty()) refuse("expected the name of a file, got nothing");
  const fs::path folder = fs::absolute(path, error).parent_path();
  fs::create_directories(folder, error);
  if (error) refuse("'" + folder.string() + "': " + error.message());
  if (fs::is_directory(path, error)) refuse("it is a directory");
  const std::string target = fs::exists(path, error) ? path : folder.string();
  if (!MayWrite(target)) refuse("'" + target + "': " + std::strerror(errno));
}

std::string Extension(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension;
}

}  // namespace polyop::cli
