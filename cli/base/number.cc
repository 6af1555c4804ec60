// SPDX-License-Identifier: Apache-2.0
#include "cli/base/number.h"

#include <charconv>

#include "cli/base/failure.h"

namespace polyop::cli {
namespace {

template <class T>
std::optional<T> Parse(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> ParseInteger(std::string_view text) { return Parse<int64_t>(text); }
std::optional<double> ParseReal(std::string_view text) { return Parse<double>(text); }

std::vector<std::string> SplitAt(char separator, const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

std::vector<int64_t> ParseShape(const std::string& text, const std::string& option) {
  constexpr size_t kMaxExtents = 32;
  std::vector<int64_t> shape;
  for (const std::string& part : SplitAt('x', text)) {
    const std::optional<int64_t> extent = ParseInteger(part);
    if (!extent || *extent < 0) {
      throw Failure(kUsage, Concat(option, ": expected an extent, got '", part, "'"), "write NAME=1x3x224x224");
    }
    shape.push_back(*extent);
  }
  if (shape.size() > kMaxExtents) {
    throw Failure(kUsage, Concat(option, ": expected at most ", kMaxExtents, " extents, got ", shape.size()));
  }
  return shape;
}

}  // namespace polyop::cli
