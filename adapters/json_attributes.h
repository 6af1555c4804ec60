// SPDX-License-Identifier: Apache-2.0
// A node's attributes as JSON: numbers, texts and lists. Infinities and NaN are texts.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/op.h"
#include "nlohmann/json.hpp"

namespace polyop {

using Json = nlohmann::ordered_json;

class JsonAttributes : public AttrSource {
 public:
  /// Keeps a reference.
  explicit JsonAttributes(const Json& values) : values_(values) {}

  bool Get(const char* name, AttrValue* value) override {
    const auto found = values_.find(name);
    if (found == values_.end()) return false;
    if (found->is_number_integer()) {
      *value = AttrValue::Int(found->get<int64_t>());
    } else if (IsReal(*found)) {
      *value = AttrValue::Float(Real(*found));
    } else if (found->is_string()) {
      *value = AttrValue::String(found->get<std::string>());
    } else if (!found->is_array() || found->empty()) {  // an empty list is an absent attribute in every runtime
      return false;
    } else if (found->front().is_number_integer()) {
      *value = AttrValue::Ints(found->get<std::vector<int64_t>>());
    } else if (IsReal(found->front())) {
      std::vector<double> reals;
      std::transform(found->begin(), found->end(), std::back_inserter(reals), Real);
      *value = AttrValue::Floats(std::move(reals));
    } else {
      return false;
    }
    return true;
  }

 private:
  static bool IsReal(const Json& json) {
    return json.is_number() || json == "Infinity" || json == "-Infinity" || json == "NaN";
  }
  static double Real(const Json& json) {
    return json.is_string() ? std::strtod(json.get_ref<const std::string&>().c_str(), nullptr) : json.get<double>();
  }

  const Json& values_;
};

}  // namespace polyop
