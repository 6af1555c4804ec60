// Whole files in and out of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace polyop::cli {

/// Throws Failure (kBadFile) naming the path: missing, a directory, not readable, or empty.
std::vector<uint8_t> ReadFile(const std::string& path);
void WriteFile(const std::string& path, const void* data, size_t size);
/// ".png" of "a/b.PNG": lower case, with the dot; empty if there is none.
std::string Extension(const std::string& path);

}  // namespace polyop::cli
