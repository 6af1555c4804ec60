// NumPy's .npy (one array) and .npz (a zip archive of them).
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <map>
#include <span>
#include <string>

#include "cli/base/array.h"

namespace polyop::cli {

/// Parses versions 1 to 3, little-endian, C or Fortran order. Messages contain `name`. Throws Failure if anything is
/// malformed. Never allocates more than the size of the file.
Array ParseNpy(std::span<const uint8_t> bytes, const std::string& name);
std::vector<uint8_t> FormatNpy(const Array& array);

/// Reads every array of the archive. Names have no ".npy".
std::map<std::string, Array> ReadNpz(const std::string& path);
void WriteNpz(const std::string& path, const std::map<std::string, Array>& arrays);

}  // namespace polyop::cli
