// JSON as the commands print and read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace polyop::cli {

/// Keeps its fields in the order in which they were written.
using Json = nlohmann::ordered_json;

/// Indented. Names in a model may hold bytes that are no UTF-8: each becomes the replacement character.
inline std::string ToText(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

/// Of a file's bytes; "discarded" where they are no JSON and may be so, else an exception.
inline Json ParseJson(const std::vector<uint8_t>& bytes, bool may_fail = false) {
  return Json::parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), nullptr, !may_fail);
}

}  // namespace polyop::cli
