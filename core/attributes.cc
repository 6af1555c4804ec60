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
  } else if (std::isfinite(spec.least) || std::isfinite(spec.most)) {
    out << (spec.exclusive_least || !std::isfinite(spec.least) ? '(' : '[') << spec.least << ", " << spec.most
        << (std::isfinite(spec.most) ? ']' : ')');
  }
  return out.str();
}

namespace attributes_internal {

Status CheckRange(const AttrSpec& spec, double value, double given) {
  const bool inside = (spec.exclusive_least ? value > spec.least : value >= spec.least) && value <= spec.most;
  // NaN is inside of nothing; infinity is allowed where it was meant, not where a number was too large.
  const bool overflows = std::isinf(value) && !std::isinf(given);
  if (inside && !overflows && (std::isfinite(value) || spec.infinite)) return Status::Ok();
  const bool rounded = !std::isnan(value) && value != given && (value == 0 || overflows);
  const std::string got = rounded ? Concat(given, " (", value, " as a 32-bit number)") : Concat(given);
  const std::string range = RangeText(spec);
  if (range.empty() && spec.infinite && !overflows) {
    return InvalidArgument("attribute '", spec.name, "' is NaN, wanted a number");
  }
  return InvalidArgument("attribute '", spec.name, "' is ", got, ", wanted ",
                         range.empty() ? "a finite number" : "a number in " + range);
}

Status WrongType(const AttrSpec& spec, AttrType wanted, const AttrValue& got) {
  return InvalidArgument("attribute '", spec.name, "' is the ", NameOf(got.type), " ", ToString(got), ", wanted ",
                         NameOf(wanted));
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
  return InvalidArgument("attribute '", spec.name, "' is ", ToString(value), ", wanted one of ", RangeText(spec));
}

}  // namespace attributes_internal
}  // namespace polyop
