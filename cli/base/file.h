// Reading and writing files as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyop::cli {

/// Throws Failure (kBadFile) if the file is missing, a directory, not readable, or empty.
std::vector<uint8_t> ReadFile(const std::string& path);
void WriteFile(const std::string& path, const void* data, size_t size);
/// Creates the missing folders of an output file. Throws Failure (kBadFile) if the file cannot be written there.
/// Commands call it before any work.
void PrepareOutput(const std::string& path);
/// Returns the extension in lower case and with the dot: ".png" for "a/b.PNG", "" if there is none.
std::string Extension(const std::string& path);

}  // namespace polyop::cli
