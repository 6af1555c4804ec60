// SPDX-License-Identifier: Apache-2.0
// JSON that the commands print and read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace polyop::cli {

/// JSON whose fields keep the order of insertion.
using Json = nlohmann::ordered_json;

/// Returns indented text. Names in a model may contain bytes that are not UTF-8, which become the replacement
/// character.
inline std::string ToText(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

/// Parses a file's bytes. If they are not JSON, returns a discarded value with `may_fail` and throws without.
inline Json ParseJson(const std::vector<uint8_t>& bytes, bool may_fail = false) {
  return Json::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), nullptr, !may_fail);
}

}  // namespace polyop::cli
