// SPDX-License-Identifier: Apache-2.0
// The shape evaluator's domain for shape inference: an extent is a number, a symbol, an expression of symbols, or
// unknown.
#pragma once

#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "core/int_domain.h"
#include "platform/process.h"

namespace polyop::onnxruntime {

struct SymbolicDim {
  bool known = false;
  int64_t value = -1;
  std::string text;  // if not known: a symbol or an expression; "" is unknown
};

class SymbolicDomain {
 public:
  using Dim = SymbolicDim;

  Dim Const(int64_t v) { return {true, v, {}}; }
  Dim Unknown() { return {}; }
  /// Returns the symbol of a name. All outputs with the name share it.
  Dim Pending(std::string_view name, const Dim&) {
    std::string& symbol = pending_[std::string(name)];
    if (symbol.empty()) symbol = FreshSymbol(name);
    return Symbol(symbol);
  }
  /// Returns a unique symbol: extents with the same symbol are taken as equal. It differs from the names in models,
  /// also from the symbols of models that other processes optimised and saved.
  static std::string FreshSymbol(std::string_view name) {
    static const uint64_t process =
        static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) * 0x9E3779B97F4A7C15 +
        ProcessId();
    static std::atomic<int64_t> number = 0;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(process));
    return Concat("polyop_", name, "_", text, "_", ++number);
  }
  /// Different symbols may be equal, so only numbers are known to differ.
  bool SurelyDiffer(const Dim& a, const Dim& b) const { return a.known && b.known && a.value != b.value; }
  std::string Text(const Dim& d) const { return d.known ? std::to_string(d.value) : d.text.empty() ? "?" : d.text; }

  Dim Broadcast(const Dim& a, const Dim& b) {
    if (a.known && a.value != 1) return a;
    if (b.known && b.value != 1) return b;
    if (a.known) return b;  // a is 1
    if (b.known) return a;
    return a.text == b.text ? a : Unknown();
  }

  Dim Apply(ExprKind kind, const Dim& a, const Dim& b) {
    if (a.known && b.known) {
      IntDomain numbers({});
      const int64_t value = numbers.Apply(kind, a.value, b.value);
      return numbers.problem() == nullptr ? Const(value) : Unknown();
    }
    if (kind == ExprKind::kMul && ((a.known && a.value == 0) || (b.known && b.value == 0))) return Const(0);
    if (kind == ExprKind::kMul && ((a.known && a.value == 1) || (b.known && b.value == 1))) {
      return a.known ? b : a;
    }
    if (kind == ExprKind::kAdd && a.known && a.value == 0) return b;
    if (!a.text.empty() && a.text == b.text && (kind == ExprKind::kMin || kind == ExprKind::kMax)) return a;
    if (b.known && b.value == (kind == ExprKind::kFloorDiv || kind == ExprKind::kCeilDiv ? 1 : 0) &&
        kind != ExprKind::kMul && kind != ExprKind::kMin && kind != ExprKind::kMax) {
      return a;
    }
    if (!HasText(a) || !HasText(b)) return Unknown();
    const std::string ta = Operand(Text(a), false), tb = Operand(Text(b), false);
    switch (kind) {
      case ExprKind::kAdd: return Symbol("(" + ta + " + " + tb + ")");
      case ExprKind::kSub: return Symbol("(" + ta + " - " + tb + ")");
      case ExprKind::kMul: return Symbol(Operand(Text(a), true) + "*" + Operand(Text(b), true));
      case ExprKind::kFloorDiv: return Symbol("floor(" + ta + "/" + tb + ")");
      case ExprKind::kCeilDiv: return Symbol("ceil(" + ta + "/" + tb + ")");
      case ExprKind::kMin: return Symbol("min(" + ta + ", " + tb + ")");
      case ExprKind::kMax: return Symbol("max(" + ta + ", " + tb + ")");
      default: return Unknown();
    }
  }

  Dim FloorScale(const Dim& d, double scale) {
    if (d.known) {
      IntDomain numbers({});
      const int64_t value = numbers.FloorScale(d.value, scale);
      return numbers.problem() == nullptr ? Const(value) : Unknown();
    }
    if (scale == 1.0) return d;
    if (!HasText(d)) return Unknown();
    char digits[32];  // the shortest text that only this number has
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, scale);
    return Symbol("floor(" + Operand(d.text, true) + "*" + std::string(digits, end.ptr) + ")");
  }

  /// ONNX Runtime does not expose input values to shape inference.
  Dim Input(int, int64_t) { return Unknown(); }
  bool InputReal(int, int64_t, double*) const { return false; }

 private:
  static Dim Symbol(std::string text) { return {false, -1, std::move(text)}; }
  static bool HasText(const Dim& d) { return d.known || !d.text.empty(); }

  // Returns the text in parentheses unless it is a name, a number, a call or already in parentheses; with `product`,
  // unless it is a product of those. A model's names may contain operators, and different expressions need different
  // texts.
  static std::string Operand(const std::string& text, bool product) {
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      depth += (c == '(') - (c == ')');
      const bool name =
          std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '(' || c == ')';
      if (depth < 0 || (depth == 0 && !name && !(product && c == '*'))) return "(" + text + ")";
    }
    return depth == 0 ? text : "(" + text + ")";
  }

  std::map<std::string, std::string> pending_;
};

}  // namespace polyop::onnxruntime
