// SPDX-License-Identifier: Apache-2.0
// Reading and writing files as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyop::cli {

/// Throws Failure (kBadFile) if the file is missing, a directory, not readable, or empty.
std::vector<uint8_t> ReadFile(const std::string& path);
/// Returns the number of bytes of such a file.
uint64_t FileSize(const std::string& path);

/// A small file may claim contents of any size. The contents of all files of a command may take this much memory, or by
/// default kFreeMemory and kMemoryPerByte for each byte of the files.
inline constexpr uint64_t kFreeMemory = uint64_t{256} << 20, kMemoryPerByte = 64;
/// Sets the limit; 0 is the default.
void SetMemoryLimit(uint64_t bytes);
uint64_t MemoryLimit();
/// Call it before the contents of a file are allocated. Throws Failure (kBadFile) if they exceed the limit together
/// with those of other files. A file that is read again counts once.
void TakeMemory(const std::string& path, uint64_t bytes, uint64_t file_size);
/// Counts the contents of a file no longer.
void ReleaseMemory(const std::string& path);

/// A file that gets its name when it is complete and on the disk, so that an interruption or a full disk leaves the
/// file that had the name before. A link of that name is replaced, not followed. A pipe or a device is written as it
/// is.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// The path to write to until Commit().
  const std::string& partial() const { return partial_; }
  /// Throws Failure (kBadFile).
  void Commit();

 private:
  std::string path_, partial_;
};

/// Writes a file atomically.
void WriteFile(const std::string& path, const void* data, size_t size);
/// Creates the missing folders of an output file. Throws Failure (kBadFile) if the file cannot be written there.
/// Commands call it before any work.
void PrepareOutput(const std::string& path);
/// Returns the extension in lower case and with the dot: ".png" for "a/b.PNG", "" if there is none.
std::string Extension(const std::string& path);

}  // namespace polyop::cli
