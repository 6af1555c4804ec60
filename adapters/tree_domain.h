// SPDX-License-Identifier: Apache-2.0
// The shape evaluator's domain for calls whose extents are not known yet: an extent is a number or an expression of the
// inputs' extents, in JSON, which the caller evaluates once it knows them.
//
//   7                        a number
//   ["extent", i, d]         extent d of input i
//   ["+", a, b]              also "-", "*", "//", "ceil_div", "min", "max"
//   ["scale", a, 0.5]        floor(a * 0.5)
//   ["broadcast", a, b]      the larger extent; the other is 1 or equal
//   ["found", name, bound]   found by the kernel; one size per name, at most the bound
//   ["value", i, k]          element k of input i
//   null                     depends on values of inputs
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/int_domain.h"
#include "nlohmann/json.hpp"

namespace polyop {

using Json = nlohmann::ordered_json;

struct TreeDim {
  Json tree;
  bool data_dependent = true;  // depends on the kernel or on a value
  std::string symbol = "?";    // its name in messages

  bool known() const { return tree.is_number_integer(); }
  int64_t value() const { return tree.get<int64_t>(); }
};

class TreeDomain {
 public:
  using Dim = TreeDim;

  /// `values` has the values of inputs that are known, by the inputs' numbers, as doubles.
  explicit TreeDomain(const std::map<int, std::vector<double>>& values = {}) : values_(values) {}

  static Dim Extent(int input, int dimension, std::string symbol) {
    return {Json::array({"extent", input, dimension}), false, std::move(symbol)};
  }

  /// Returns the pairs of extents that the caller must check for equality once it knows them, in the order of a real
  /// call.
  const Json& checks() const { return checks_; }
  /// Returns why an extent could not be computed, or null, as in IntDomain.
  const char* problem() const { return problem_; }

  Dim Const(int64_t v) { return {Json(v), false, {}}; }
  Dim Unknown() { return {}; }
  Dim Pending(std::string_view name, const Dim& bound) {
    return {Json::array({"found", std::string(name), bound.tree}), true, std::string(name)};
  }
  bool SurelyDiffer(const Dim& a, const Dim& b) const { return a.known() && b.known() && a.value() != b.value(); }
  void MustEqual(const Dim& expected, const Dim& got) {
    if (expected.data_dependent || got.data_dependent || expected.tree == got.tree) return;
    checks_.push_back(Json::array({expected.tree, got.tree}));
  }
  std::string Text(const Dim& d) const { return d.known() ? std::to_string(d.value()) : d.symbol; }

  Dim Broadcast(const Dim& a, const Dim& b) {
    if (a.known() && (b.known() || a.value() == 1)) return a.value() == 1 ? b : a;
    if (b.known() && b.value() == 1) return a;
    return Node("broadcast", a, b);
  }

  Dim Apply(ExprKind kind, const Dim& a, const Dim& b) {
    if (a.known() && b.known())
      return Compute([&](IntDomain& numbers) { return numbers.Apply(kind, a.value(), b.value()); });
    const bool divides = kind == ExprKind::kFloorDiv || kind == ExprKind::kCeilDiv;
    if (divides && b.known() && b.value() == 1) return a;
    if (divides && b.known() && b.value() <= 0) {  // the same error for any dividend
      return Compute([&](IntDomain& numbers) { return numbers.Apply(kind, 0, b.value()); });
    }
    switch (kind) {
      case ExprKind::kAdd: return Node("+", a, b);
      case ExprKind::kSub: return Node("-", a, b);
      case ExprKind::kMul: return Node("*", a, b);
      case ExprKind::kFloorDiv: return Node("//", a, b);
      case ExprKind::kCeilDiv: return Node("ceil_div", a, b);
      case ExprKind::kMin: return Node("min", a, b);
      case ExprKind::kMax: return Node("max", a, b);
      default: return Unknown();
    }
  }

  Dim FloorScale(const Dim& d, double scale) {
    if (d.known()) return Compute([&](IntDomain& numbers) { return numbers.FloorScale(d.value(), scale); });
    return {Json::array({"scale", d.tree, scale}), d.data_dependent, "?"};
  }

  Dim Input(int input, int64_t index) {
    double value = 0;
    if (InputReal(input, index, &value)) return Const(static_cast<int64_t>(value));
    return {Json::array({"value", input, index}), true, "?"};
  }
  bool InputReal(int input, int64_t index, double* value) const {
    const auto found = values_.find(input);
    if (found == values_.end() || index >= static_cast<int64_t>(found->second.size())) return false;
    *value = found->second[static_cast<size_t>(index)];
    return true;
  }

 private:
  static Dim Node(const char* kind, const Dim& a, const Dim& b) {
    return {Json::array({kind, a.tree, b.tree}), a.data_dependent || b.data_dependent, "?"};
  }
  // Computes with numbers as in a real call.
  template <class Computation>
  Dim Compute(const Computation& computation) {
    IntDomain numbers({});
    const int64_t value = computation(numbers);
    if (problem_ == nullptr) problem_ = numbers.problem();
    return Const(value);
  }

  std::map<int, std::vector<double>> values_;
  Json checks_ = Json::array();
  const char* problem_ = nullptr;
};

}  // namespace polyop
