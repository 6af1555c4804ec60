// SPDX-License-Identifier: Apache-2.0
// Numbers from the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyop::cli {

/// Parses all of `text` as a decimal 64-bit integer, which may have a sign and spaces around it. Returns nullopt if it
/// is anything else.
std::optional<int64_t> ParseInteger(std::string_view text);
/// Like ParseInteger for real numbers. Accepts "inf" and "nan", and rejects what is out of the range of a double.
std::optional<double> ParseReal(std::string_view text);

/// Splits "1,2,3" into its parts. An empty text has none.
std::vector<std::string> SplitAt(char separator, const std::string& text);

/// Parses "1x3x224x224". Throws Failure, whose message begins with `option`, unless these are at most 32 extents of at
/// least 0.
std::vector<int64_t> ParseShape(const std::string& text, const std::string& option);

}  // namespace polyop::cli
