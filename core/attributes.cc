// SPDX-License-Identifier: Apache-2.0
#include "core/attributes.h"

#include <cmath>
#include <sstream>

namespace polyop {

std::string_view NameOf(AttrType type) {
  constexpr std::string_view kNames[] = {"int", "float", "string", "ints", "floats"};
  return kNames[static_cast<int>(type)];
}

std::string ToString(const AttrValue& value) {
  std::ostringstream out;
  const auto list = [&](const auto& items) {
    out << '[';
    for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << items[i];
    out << ']';
  };
  switch (value.type) {
    case AttrType::kInt: out << value.ints.at(0); break;
    case AttrType::kFloat: out << value.floats.at(0); break;
    case AttrType::kString: out << value.text; break;
    case AttrType::kInts: list(value.ints); break;
    case AttrType::kFloats: list(value.floats); break;
  }
  return out.str();
}

std::string RangeText(const AttrSpec& spec) {
  std::ostringstream out;
  if (spec.num_choices() > 0) {
    out << '{';
    for (int i = 0; i < spec.num_choices(); ++i) {
      if (i) out << ", ";
      if (spec.int_coded) out << i << '=';
      out << spec.choices[i];
    }
    out << '}';
  } else if (std::isfinite(spec.min) || std::isfinite(spec.max)) {
    out << (spec.exclusive_min || !std::isfinite(spec.min) ? '(' : '[') << spec.min << ", " << spec.max
        << (std::isfinite(spec.max) ? ']' : ')');
  }
  return out.str();
}

namespace attributes_internal {

Status CheckRange(const AttrSpec& spec, double value, double given) {
  const bool inside = (spec.exclusive_min ? value > spec.min : value >= spec.min) && value <= spec.max;
  // NaN is in no range. Infinity is valid only if the attribute allows it and the given value was infinite too.
  const bool overflows = std::isinf(value) && !std::isinf(given);
  if (inside && !overflows && (std::isfinite(value) || spec.infinite)) return Status::Ok();
  const bool rounded = !std::isnan(value) && value != given && (value == 0 || overflows);
  const std::string got = rounded ? Concat(given, " (", value, " as a 32-bit float)") : Concat(given);
  const std::string range = RangeText(spec);
  if (range.empty() && spec.infinite && !overflows) {
    return InvalidArgument("attribute '", spec.name, "': expected a number, got ", got);
  }
  return InvalidArgument("attribute '", spec.name, "': expected ",
                         range.empty() ? "a finite number" : "a number in " + range, ", got ", got);
}

Status WrongType(const AttrSpec& spec, AttrType expected, const AttrValue& got) {
  return InvalidArgument("attribute '", spec.name, "': expected ", NameOf(expected), ", got ", NameOf(got.type), " ",
                         ToString(got));
}

bool AsInts(const AttrValue& value, std::vector<int64_t>* out) {
  if (value.type != AttrType::kInt && value.type != AttrType::kInts) return false;
  *out = value.ints;
  return true;
}

bool AsFloats(const AttrValue& value, std::vector<double>* out) {
  if (value.type == AttrType::kString) return false;
  const bool integers = value.type == AttrType::kInt || value.type == AttrType::kInts;
  *out = integers ? std::vector<double>(value.ints.begin(), value.ints.end()) : value.floats;
  return true;
}

Status ChoiceIndex(const AttrSpec& spec, const AttrValue& value, int64_t* out) {
  if (value.type == AttrType::kInt && value.ints[0] >= 0 && value.ints[0] < spec.num_choices()) {
    *out = value.ints[0];
    return Status::Ok();
  }
  if (value.type == AttrType::kString) {
    for (int i = 0; i < spec.num_choices(); ++i) {
      if (value.text == spec.choices[i]) {
        *out = i;
        return Status::Ok();
      }
    }
  }
  return InvalidArgument("attribute '", spec.name, "': expected one of ", RangeText(spec), ", got ", ToString(value));
}

}  // namespace attributes_internal
}  // namespace polyop
