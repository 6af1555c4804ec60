// NumPy's .npy (one array) and .npz (a zip archive of them).
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <map>
#include <span>
#include <string>

#include "cli/base/array.h"

namespace polyop::cli {

/// Parses versions 1 to 3, little-endian, C or Fortran order. `name` is for messages. Throws Failure on
/// anything malformed; never allocates more than the file's own size.
Array ParseNpy(std::span<const uint8_t> bytes, const std::string& name);
std::vector<uint8_t> FormatNpy(const Array& array);

/// Every array of the archive, by name without ".npy".
std::map<std::string, Array> ReadNpz(const std::string& path);
void WriteNpz(const std::string& path, const std::map<std::string, Array>& arrays);

}  // namespace polyop::cli
