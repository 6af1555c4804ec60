// SPDX-License-Identifier: Apache-2.0
#include "cli/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "cli/base/failure.h"
#include "cli/base/text.h"
#include "platform/program.h"

namespace polyop::cli {
namespace fs = std::filesystem;

namespace {

struct Contents {
  uint64_t bytes, file_size;
};
uint64_t memory_limit = 0;
std::map<std::string, Contents> contents_of_files;

void CheckIsFile(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw Failure(kBadFile, "'" + path + "' does not exist");
  if (fs::is_directory(path, error)) throw Failure(kBadFile, "'" + path + "': expected a file, got a directory");
}

}  // namespace

uint64_t FileSize(const std::string& path) {
  CheckIsFile(path);
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) throw Failure(kBadFile, "'" + path + "' cannot be read: " + error.message());
  if (size == 0) throw Failure(kBadFile, "'" + path + "' is empty");
  return size;
}

void SetMemoryLimit(uint64_t bytes) { memory_limit = bytes; }
uint64_t MemoryLimit() { return memory_limit; }

void TakeMemory(const std::string& path, uint64_t bytes, uint64_t file_size) {
  contents_of_files[path] = {bytes, file_size};
  uint64_t taken = 0, allowed = kFreeMemory;
  for (const auto& [name, contents] : contents_of_files) {
    taken += contents.bytes;
    allowed += kMemoryPerByte * contents.file_size;
  }
  if (memory_limit > 0) allowed = memory_limit;
  if (taken <= allowed) return;
  const std::string together = contents_of_files.size() > 1 ? " together with the other files'" : "";
  throw Failure(kBadFile,
                Concat("'", path, "': expected contents of at most ", BytesText(static_cast<double>(allowed)), together,
                       ", got ", BytesText(static_cast<double>(taken))),
                "--memory GB allows more");
}

void ReleaseMemory(const std::string& path) { contents_of_files.erase(path); }

std::vector<uint8_t> ReadFile(const std::string& path) {
  CheckIsFile(path);
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

namespace {

Failure NotWritable(const std::string& path) {
  return {kBadFile, "'" + path + "' cannot be written: " + std::strerror(errno),
          "does its folder exist, and may you write there?"};
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), partial_(path) {
  constexpr size_t kMaxName = 255;
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return;
  const auto hidden = [](const std::string& name) { return "." + name + ".partial-" + ProcessName() + ".0"; };
  std::string name = hidden(fs::path(path).filename().string());  // as in polyop._onnx.atomic_file
  if (name.size() > kMaxName) name = hidden(std::to_string(std::hash<std::string>()(name)));
  partial_ = (fs::path(path).parent_path() / name).string();
}

AtomicFile::~AtomicFile() {
  std::error_code error;
  if (partial_ != path_) fs::remove(partial_, error);
}

void AtomicFile::Commit() {
  if (partial_ == path_) return;
  if (!SyncFile(partial_)) throw NotWritable(path_);
  std::error_code error;
  fs::rename(partial_, path_, error);
  if (error) throw Failure(kBadFile, "'" + path_ + "' cannot be written: " + error.message());
}

void WriteFile(const std::string& path, const void* data, size_t size) {
  AtomicFile target(path);
  std::ofstream file(target.partial(), std::ios::binary | std::ios::trunc);
  if (file) file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (!file.flush()) throw NotWritable(path);
  file.close();
  target.Commit();
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
