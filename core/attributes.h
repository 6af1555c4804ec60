// SPDX-License-Identifier: Apache-2.0
// Attributes of an operator: members of its struct, each declared once with its documentation and its range.
//
//   struct RoiAlign {
//     int64_t output_height = 1;
//     Mode mode = Mode::kAvg;
//     static constexpr std::tuple kAttributes = {
//         Attr("output_height", &RoiAlign::output_height, "rows of an output bin grid").AtLeast(1),
//         Attr("mode", &RoiAlign::mode, "how samples are pooled").OneOf("avg", "max"),
//     };
//   };
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/status.h"

namespace polyop {

inline constexpr int kMaxChoices = 8;
inline constexpr int kMaxAliases = 4;

/// A list attribute of up to `kCapacity` elements, stored inside the operator's struct.
template <class T, int kCapacity>
struct List {
  std::array<T, kCapacity> items{};
  int64_t count = 0;
  constexpr T operator[](int64_t i) const { return items[static_cast<size_t>(i)]; }
  constexpr int64_t size() const { return count; }
};

enum class AttrType : uint8_t { kInt, kFloat, kString, kInts, kFloats };
std::string_view NameOf(AttrType type);

/// An attribute's value as a model file or a runtime stores it.
struct AttrValue {
  AttrType type = AttrType::kInt;
  std::vector<int64_t> ints;   // kInt (one), kInts
  std::vector<double> floats;  // kFloat (one), kFloats
  std::string text;            // kString

  static AttrValue Int(int64_t v) { return {AttrType::kInt, {v}, {}, {}}; }
  static AttrValue Float(double v) { return {AttrType::kFloat, {}, {v}, {}}; }
  static AttrValue String(std::string v) { return {AttrType::kString, {}, {}, std::move(v)}; }
  static AttrValue Ints(std::vector<int64_t> v) { return {AttrType::kInts, std::move(v), {}, {}}; }
  static AttrValue Floats(std::vector<double> v) { return {AttrType::kFloats, {}, std::move(v), {}}; }
};
/// Returns the value as text: "7", "0.25", "avg", "[1, 2]".
std::string ToString(const AttrValue& value);

/// The declaration of an attribute, without its C++ type.
struct AttrSpec {
  const char* name = "";
  const char* doc = "";
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool exclusive_min = false;
  bool infinite = false;  // infinities are valid; NaN never is
  bool required = false;
  bool int_coded = false;  // an enumeration that model files write as 0, 1, …
  std::array<const char*, kMaxChoices> choices{};
  std::array<const char*, kMaxAliases> aliases{};

  constexpr int num_choices() const {
    int n = 0;
    while (n < kMaxChoices && choices[n] != nullptr) ++n;
    return n;
  }
};

template <class Params, class Member>
struct AttrDef : AttrSpec {
  Member Params::* member;

  constexpr AttrDef AtLeast(double bound) const {
    AttrDef a = *this;
    a.min = bound;
    return a;
  }
  constexpr AttrDef GreaterThan(double bound) const {
    AttrDef a = AtLeast(bound);
    a.exclusive_min = true;
    return a;
  }
  constexpr AttrDef AtMost(double bound) const {
    AttrDef a = *this;
    a.max = bound;
    return a;
  }
  constexpr AttrDef Between(double low, double high) const { return AtLeast(low).AtMost(high); }
  constexpr AttrDef MayBeInfinite() const {
    AttrDef a = *this;
    a.infinite = true;
    return a;
  }
  /// The attribute has no default: a node without it is an error.
  constexpr AttrDef Required() const {
    AttrDef a = *this;
    a.required = true;
    return a;
  }
  /// The attribute is an enumeration that model files write as a string.
  template <class... Names>
  constexpr AttrDef OneOf(Names... names) const {
    static_assert(std::is_enum_v<Member> && sizeof...(names) <= kMaxChoices);
    AttrDef a = *this;
    a.choices = {names...};
    return a;
  }
  /// The attribute is an enumeration that model files write as 0, 1, …. Messages and the CLI use the names.
  template <class... Names>
  constexpr AttrDef Codes(Names... names) const {
    AttrDef a = OneOf(names...);
    a.int_coded = true;
    return a;
  }
  /// Adds names that exporters also write for this attribute.
  template <class... Names>
  constexpr AttrDef Also(Names... names) const {
    static_assert(sizeof...(names) <= kMaxAliases);
    AttrDef a = *this;
    a.aliases = {names...};
    return a;
  }
};

/// Declares an attribute. Member types: int64_t, float, bool, an enum, std::array<int64_t or float, n> (a single value
/// is broadcast to all n elements), List<int64_t or float, capacity>.
template <class Params, class Member>
constexpr AttrDef<Params, Member> Attr(const char* name, Member Params::* member, const char* doc) {
  AttrDef<Params, Member> a{};
  a.name = name;
  a.doc = doc;
  a.member = member;
  return a;
}

/// An attribute with its C++ type erased, for adapters.
struct AttrInfo {
  AttrSpec spec;
  AttrType type = AttrType::kInt;  // the type in model files
  /// Converts the value (int to float, one value to a list, a choice's name or number), checks its range, and stores
  /// it.
  Status (*set)(const AttrSpec& spec, void* params, const AttrValue& value) = nullptr;
  AttrValue (*get)(const AttrSpec& spec, const void* params) = nullptr;
  /// Reads element `index` as a number, for shapes. `integer` is 0 if the element is a real number. Returns false if
  /// there is no such element.
  bool (*number)(const void* params, int64_t index, double* real, int64_t* integer) = nullptr;
};

/// Returns "[0, inf)", "{avg, max}", …; empty if every value is valid.
std::string RangeText(const AttrSpec& spec);

namespace attributes_internal {

// Checks the range of one number. `value` is the number that the kernel sees (a real number rounded to float); the
// message contains `given`, the number before rounding.
Status CheckRange(const AttrSpec& spec, double value, double given);
Status WrongType(const AttrSpec& spec, AttrType expected, const AttrValue& got);
// Reads the value as a list of integers or reals; false if it has another type. Integers convert to reals, and a scalar
// is a list of one element.
bool AsInts(const AttrValue& value, std::vector<int64_t>* out);
bool AsFloats(const AttrValue& value, std::vector<double>* out);
Status ChoiceIndex(const AttrSpec& spec, const AttrValue& value, int64_t* out);

template <class T>
constexpr bool kIsReal = std::is_same_v<T, float>;

template <class T, size_t n>
Status Assign(const AttrSpec& spec, std::array<T, n>& member, const std::vector<T>& values) {
  if (values.size() != n && values.size() != 1) {
    return InvalidArgument("attribute '", spec.name, "': expected ", n, " values, got ", values.size());
  }
  for (size_t i = 0; i < n; ++i) member[i] = values[values.size() == 1 ? 0 : i];
  return Status::Ok();
}
template <class T, int kCapacity>
Status Assign(const AttrSpec& spec, List<T, kCapacity>& member, const std::vector<T>& values) {
  if (values.size() > kCapacity) {
    return InvalidArgument("attribute '", spec.name, "': expected at most ", kCapacity, " values, got ", values.size());
  }
  member.count = static_cast<int64_t>(values.size());
  for (size_t i = 0; i < values.size(); ++i) member.items[i] = values[i];
  return Status::Ok();
}
template <class T>
Status Assign(const AttrSpec& spec, T& member, const std::vector<T>& values) {
  if (values.size() != 1) {
    return InvalidArgument("attribute '", spec.name, "': expected 1 value, got ", values.size());
  }
  member = values[0];
  return Status::Ok();
}

template <class M>
struct ElementOf {
  using Type = M;
  static constexpr bool kList = false;
};
template <class T, size_t n>
struct ElementOf<std::array<T, n>> {
  using Type = T;
  static constexpr bool kList = true;
};
template <class T, int n>
struct ElementOf<List<T, n>> {
  using Type = T;
  static constexpr bool kList = true;
};

template <class M>
std::vector<typename ElementOf<M>::Type> Values(const M& member) {
  std::vector<typename ElementOf<M>::Type> values;
  if constexpr (ElementOf<M>::kList) {
    for (size_t i = 0; i < static_cast<size_t>(member.size()); ++i) {
      values.push_back(member[static_cast<int64_t>(i)]);
    }
  } else {
    values.push_back(member);
  }
  return values;
}

template <class M>
Status SetMember(const AttrSpec& spec, M& member, const AttrValue& value) {
  using T = typename ElementOf<M>::Type;
  if constexpr (std::is_enum_v<M>) {
    int64_t index = 0;
    POLYOP_RETURN_IF_ERROR(ChoiceIndex(spec, value, &index));
    member = static_cast<M>(index);
    return Status::Ok();
  } else if constexpr (std::is_same_v<M, bool>) {
    std::vector<int64_t> ints;
    if (!AsInts(value, &ints) || ints.size() != 1) return WrongType(spec, AttrType::kInt, value);
    member = ints[0] != 0;
    return Status::Ok();
  } else if constexpr (kIsReal<T>) {
    std::vector<double> reals;
    if (!AsFloats(value, &reals)) {
      return WrongType(spec, ElementOf<M>::kList ? AttrType::kFloats : AttrType::kFloat, value);
    }
    std::vector<float> floats;
    for (double real : reals) {
      floats.push_back(static_cast<float>(real));
      POLYOP_RETURN_IF_ERROR(CheckRange(spec, floats.back(), real));
    }
    return Assign(spec, member, floats);
  } else {
    static_assert(std::is_same_v<T, int64_t>, "attributes are int64_t, float, bool, enums or lists");
    std::vector<int64_t> ints;
    if (!AsInts(value, &ints)) {
      return WrongType(spec, ElementOf<M>::kList ? AttrType::kInts : AttrType::kInt, value);
    }
    for (int64_t v : ints) {
      POLYOP_RETURN_IF_ERROR(CheckRange(spec, static_cast<double>(v), static_cast<double>(v)));
    }
    return Assign(spec, member, ints);
  }
}

template <class M>
AttrValue GetMember(const AttrSpec& spec, const M& member) {
  using T = typename ElementOf<M>::Type;
  if constexpr (std::is_enum_v<M>) {
    const auto index = static_cast<int64_t>(member);
    return spec.int_coded ? AttrValue::Int(index) : AttrValue::String(spec.choices[index]);
  } else if constexpr (std::is_same_v<M, bool>) {
    return AttrValue::Int(member ? 1 : 0);
  } else if constexpr (kIsReal<T>) {
    const std::vector<float> v = Values(member);
    return {ElementOf<M>::kList ? AttrType::kFloats : AttrType::kFloat, {}, {v.begin(), v.end()}, {}};
  } else {
    return {ElementOf<M>::kList ? AttrType::kInts : AttrType::kInt, Values(member), {}, {}};
  }
}

template <class M>
bool MemberNumber(const M& member, int64_t index, double* real, int64_t* integer) {
  const auto read = [&](auto value) {
    *real = static_cast<double>(value);
    *integer = kIsReal<decltype(value)> ? 0 : static_cast<int64_t>(value);
    return true;
  };
  if constexpr (ElementOf<M>::kList) {
    return index >= 0 && index < static_cast<int64_t>(member.size()) && read(member[index]);
  } else {
    return index == 0 && read(member);
  }
}

template <class M>
constexpr AttrType TypeOf(bool int_coded) {
  using T = typename ElementOf<M>::Type;
  if constexpr (std::is_enum_v<M>) {
    return int_coded ? AttrType::kInt : AttrType::kString;
  } else if constexpr (kIsReal<T>) {
    return ElementOf<M>::kList ? AttrType::kFloats : AttrType::kFloat;
  } else {
    return ElementOf<M>::kList ? AttrType::kInts : AttrType::kInt;
  }
}

/// Returns element I of Params::kAttributes with its C++ type erased.
template <class Params, size_t I>
AttrInfo Erase() {
  constexpr auto kDef = std::get<I>(Params::kAttributes);
  using M = std::remove_cvref_t<decltype(std::declval<Params>().*kDef.member)>;
  AttrInfo info;
  info.spec = kDef;
  info.type = TypeOf<M>(kDef.int_coded);
  info.set = [](const AttrSpec& spec, void* params, const AttrValue& value) {
    return SetMember(spec, static_cast<Params*>(params)->*std::get<I>(Params::kAttributes).member, value);
  };
  info.get = [](const AttrSpec& spec, const void* params) {
    return GetMember(spec, static_cast<const Params*>(params)->*std::get<I>(Params::kAttributes).member);
  };
  info.number = [](const void* params, int64_t index, double* real, int64_t* integer) {
    return MemberNumber(static_cast<const Params*>(params)->*std::get<I>(Params::kAttributes).member, index, real,
                        integer);
  };
  return info;
}

}  // namespace attributes_internal
}  // namespace polyop
