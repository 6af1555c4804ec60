// JSON as the commands print it.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace polyop::cli {

/// Keeps its fields in the order in which they were written.
using Json = nlohmann::ordered_json;

/// Indented. Names in a model may hold bytes that are no UTF-8: each becomes the replacement character.
inline std::string ToText(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

}  // namespace polyop::cli
