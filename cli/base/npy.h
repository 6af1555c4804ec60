// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy (one array) and .npz (a zip archive of them).
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>

#include "cli/base/array.h"

namespace polyop::cli {

/// Parses versions 1 to 3, little-endian, C or Fortran order. Messages contain `name`. Throws Failure if anything is
/// malformed. Never allocates more than the size of the file.
Array ParseNpy(std::span<const uint8_t> bytes, const std::string& name);
std::vector<uint8_t> FormatNpy(const Array& array);

/// Reads the arrays of the archive with these names, or all if there is none. Names have no ".npy". Throws Failure if
/// they exceed the memory limit (cli/base/file.h), unless `is_own`: the file is of one of polyop's processes.
std::map<std::string, Array> ReadNpz(const std::string& path, const std::set<std::string>& names = {},
                                     bool is_own = false);
void WriteNpz(const std::string& path, const std::map<std::string, Array>& arrays);

}  // namespace polyop::cli
