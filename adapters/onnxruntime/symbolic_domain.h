// The shape evaluator's domain of shape inference: an extent is a number, a symbol, an expression in
// symbols, or unknown.
#pragma once

#include <atomic>
#include <cmath>
#include <map>
#include <string>

#include "core/int_domain.h"

namespace polyop::onnxruntime {

struct SymbolicDim {
  bool known = false;
  int64_t value = -1;
  std::string text;  // when not known: "" is wholly unknown, else a symbol or an expression
};

class SymbolicDomain {
 public:
  using Dim = SymbolicDim;

  Dim Const(int64_t v) { return {true, v, {}}; }
  Dim Unknown() { return {}; }
  /// One symbol for a name, however many outputs have it.
  Dim Pending(std::string_view name, const Dim&) {
    std::string& symbol = pending_[std::string(name)];
    if (symbol.empty()) symbol = FreshSymbol(name);
    return Symbol(symbol);
  }
  /// A symbol that no other extent has: extents of the same symbol count as equal.
  static std::string FreshSymbol(std::string_view name) {
    static std::atomic<int64_t> number = 0;
    return std::string(name) + "_" + std::to_string(++number);
  }
  /// Two different symbols may turn out equal, so only numbers surely differ.
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
    const std::string ta = Text(a), tb = Text(b);
    if (ta == "?" || tb == "?") return Unknown();
    switch (kind) {
      case ExprKind::kAdd: return Symbol("(" + ta + " + " + tb + ")");
      case ExprKind::kSub: return Symbol("(" + ta + " - " + tb + ")");
      case ExprKind::kMul: return Symbol(ta + "*" + tb);
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
    return d.text.empty() ? Unknown() : Symbol("floor(" + d.text + "*" + Concat(scale) + ")");
  }

  /// ONNX Runtime does not hand values of inputs to shape inference.
  Dim Input(int, int64_t) { return Unknown(); }
  bool InputReal(int, int64_t, double*) const { return false; }

 private:
  static Dim Symbol(std::string text) { return {false, -1, std::move(text)}; }

  std::map<std::string, std::string> pending_;
};

}  // namespace polyop::onnxruntime
