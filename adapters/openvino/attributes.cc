// SPDX-License-Identifier: Apache-2.0
#include "adapters/openvino/attributes.h"

#include <charconv>
#include <typeinfo>
#include <vector>

namespace polyop::openvino {
namespace {

// Returns the value if it has this type, or null. `Any::as` has symbols that change between releases.
template <class T>
const T* As(const ov::Any& any) {
  return any.type_info() == typeid(T) ? static_cast<const T*>(any.addressof()) : nullptr;
}

template <class T>
std::string NumberText(T value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

template <class T>
std::string ListText(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ",") + NumberText(value);
  return text;
}

// Parses a text that TextOf wrote. Ignores everything after the last valid number.
template <class T>
std::vector<T> ParseList(const std::string& text) {
  std::vector<T> values;
  const char *at = text.data(), *const end = at + text.size();
  T value{};
  while (at < end) {
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc()) break;
    values.push_back(value);
    at = stop + 1;  // after the comma
  }
  return values;
}

}  // namespace

bool OnnxAttributes::Get(const char* name, AttrValue* value) {
  const ov::Any any = context_.get_attribute_as_any(name);
  if (any.empty()) return false;
  if (const auto* integer = As<int64_t>(any)) {
    *value = AttrValue::Int(*integer);
  } else if (const auto* real = As<double>(any)) {
    *value = AttrValue::Float(*real);
  } else if (const auto* single = As<float>(any)) {
    *value = AttrValue::Float(*single);
  } else if (const auto* text = As<std::string>(any)) {
    *value = AttrValue::String(*text);
  } else if (const auto* integers = As<std::vector<int64_t>>(any)) {
    *value = AttrValue::Ints(*integers);
  } else if (const auto* reals = As<std::vector<double>>(any)) {
    *value = AttrValue::Floats(*reals);
  } else if (const auto* singles = As<std::vector<float>>(any)) {
    *value = AttrValue::Floats({singles->begin(), singles->end()});
  } else {
    return false;
  }
  return true;
}

bool TextAttributes::Get(const char* name, AttrValue* value) {
  const auto found = texts_.find(name);
  if (found == texts_.end()) return false;
  const std::string& text = found->second;
  switch (op_.FindAttribute(name)->type) {
    case AttrType::kString: *value = AttrValue::String(text); return true;
    case AttrType::kInts: *value = AttrValue::Ints(ParseList<int64_t>(text)); return true;
    case AttrType::kFloats: *value = AttrValue::Floats(ParseList<double>(text)); return true;
    case AttrType::kInt: {
      const auto numbers = ParseList<int64_t>(text);
      if (numbers.empty()) return false;
      *value = AttrValue::Int(numbers[0]);
      return true;
    }
    case AttrType::kFloat: {
      const auto numbers = ParseList<double>(text);
      if (numbers.empty()) return false;
      *value = AttrValue::Float(numbers[0]);
      return true;
    }
  }
  return false;
}

std::string TextOf(const AttrValue& value) {
  switch (value.type) {
    case AttrType::kString: return value.text;
    case AttrType::kInt:
    case AttrType::kInts: return ListText(value.ints);
    default: return ListText(value.floats);
  }
}

}  // namespace polyop::openvino
