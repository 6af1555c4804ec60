// Numbers that people type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyop::cli {

/// The whole of `text` as a decimal integer of 64 bits, a sign and spaces around it allowed; else nothing.
std::optional<int64_t> ParseInteger(std::string_view text);
/// The same for a real number; "inf" and "nan" are some, what is too large or too small for a double is none.
std::optional<double> ParseReal(std::string_view text);

/// "1,2,3" as parts; an empty text has none.
std::vector<std::string> SplitAt(char separator, const std::string& text);

/// "1x3x224x224". Throws Failure, which begins with `option`, unless these are at most 32 extents of 0 or more.
std::vector<int64_t> ParseShape(const std::string& text, const std::string& option);

}  // namespace polyop::cli
