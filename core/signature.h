// SPDX-License-Identifier: Apache-2.0
// The signature of an operator: a string, parsed at compile time, that states all shapes.
//
//   "input: T[N, C, H, W], rois: T[R, 5] -> output: T[R, C, output_height, output_width]"
//
// Grammar
//   signature := tensors '->' tensors
//   tensor    := name ['?'] ':' dtype '[' [dim {',' dim}] ']' ['...']      '?' optional, '...' variadic (last input)
//   dtype     := f32 f16 bf16 f64 i8 u8 i16 i32 i64 bool | any | VARIABLE  one variable = one type in a call
//   dim       := expression                  inputs: a new name is bound, everything else is checked
//                                            (an attribute alone is in parentheses: it would be a new name)
//              | NAME '=' expression         inputs: NAME is the expression, and the extent is checked
//              | NAME '?=' expression        inputs: the value of NAME if the optional tensor is missing
//              | NAME '<=' expression        outputs: found by the kernel, at most the expression
//              | '*'                         inputs: any extent
//              | '...' [NAME]                inputs: any number of extents, named NAME
//              | '...' NAME                  outputs: those extents
//              | '...' broadcast(NAME, NAME) outputs: both broadcast by NumPy's rules
//   expression: + - * / (floor division), parentheses, integers, names, name[index],
//               min(a, b), max(a, b), ceil_div(a, b), floor(a * v) where v is a real number,
//               size(NAME): outputs: the number of elements of an input, of all its tensors if it is variadic
//   A name is an extent bound by an input, else an input tensor (its first value, or value [index]), else
//   an attribute. "[]" is a scalar; a tensor of shape [1] is accepted as one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/dtype.h"

namespace polyop {

inline constexpr int kMaxTensors = 12;  // inputs, and likewise outputs, of one signature
inline constexpr int kMaxDims = 6;      // dimensions in one tensor's text
inline constexpr int kMaxNames = 32;    // distinct names of one signature
inline constexpr int kMaxNodes = 128;   // distinct expression nodes of one signature

enum class ExprKind : uint8_t {
  kConst,      // value
  kDim,        // name: an extent bound by an input
  kInput,      // name, value = element index: a value inside an input tensor
  kAttribute,  // name, value = element index
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kCeilDiv,
  kMin,
  kMax,
  kFloorScale,  // floor(left * right), right a real-valued kInput or kAttribute
  kSize,        // value: the index of an input
};

struct Expr {
  ExprKind kind = ExprKind::kConst;
  int64_t value = 0;
  int16_t name = -1;
  int16_t left = -1, right = -1;
  constexpr bool operator==(const Expr&) const = default;
};

struct DimSpec {
  enum class Kind : uint8_t {
    kExpr,       // expr
    kBind,       // name is bound here
    kDefine,     // name := expr, checked
    kDefault,    // name is bound here, or is expr if the tensor is absent
    kPending,    // output: name found by the kernel, at most expr
    kWildcard,   // any extent
    kRest,       // any number of extents, named name (-1: unnamed)
    kBroadcast,  // output: broadcast of rests name and other
  };
  Kind kind = Kind::kExpr;
  int16_t expr = -1;
  int16_t name = -1;
  int16_t other = -1;
  std::string_view text;  // as written, for messages and documentation

  /// Returns true if the entry matches any number of extents.
  constexpr bool several() const { return kind == Kind::kRest || kind == Kind::kBroadcast; }
};

struct TensorSpec {
  std::string_view name;
  std::string_view dtype_text;
  bool optional = false;
  bool variadic = false;
  bool any_dtype = false;
  int8_t type_variable = -1;  // index, or -1: `dtype` holds
  DType dtype = DType::kF32;
  int rank = 0;  // number of entries in dims; with has_rest the minimum rank is rank - 1
  bool has_rest = false;
  std::array<DimSpec, kMaxDims> dims{};

  /// Returns true if the kernel finds some extent.
  constexpr bool pending() const {
    for (int i = 0; i < rank; ++i) {
      if (dims[i].kind == DimSpec::Kind::kPending) return true;
    }
    return false;
  }
};

struct NameSpec {
  enum class Kind : uint8_t { kUnbound, kDim, kPendingDim, kRest, kInput, kAttribute, kTypeVariable };
  std::string_view text;
  Kind kind = Kind::kUnbound;
  int16_t input = -1;  // kInput: its index
};

class Signature {
 public:
  /// Parses the text. A malformed text is a compile-time error whose note contains the reason.
  consteval Signature(const char* text) : text_(text) { Parse(); }

  constexpr std::string_view text() const { return text_; }
  constexpr int num_inputs() const { return num_inputs_; }
  constexpr int num_outputs() const { return num_outputs_; }
  constexpr const TensorSpec& input(int i) const { return inputs_[i]; }
  constexpr const TensorSpec& output(int i) const { return outputs_[i]; }
  constexpr int num_names() const { return num_names_; }
  constexpr const NameSpec& name(int i) const { return names_[i]; }
  constexpr int num_exprs() const { return num_nodes_; }
  constexpr const Expr& expr(int i) const { return nodes_[i]; }
  constexpr bool variadic() const { return num_inputs_ > 0 && inputs_[num_inputs_ - 1].variadic; }

 private:
  // A throw inside a consteval function is reported with its text.
  static constexpr void Require(bool condition, const char* reason) {
    if (!condition) throw reason;
  }

  static constexpr bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

  constexpr void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  constexpr bool Peek(std::string_view token) {
    Skip();
    return text_.substr(at_, token.size()) == token;
  }
  constexpr bool Accept(std::string_view token) {
    if (!Peek(token)) return false;
    at_ += token.size();
    return true;
  }
  constexpr void Expect(std::string_view token, const char* reason) { Require(Accept(token), reason); }
  constexpr std::string_view Name() {
    Skip();
    const size_t begin = at_;
    Require(at_ < text_.size() && IsNameStart(text_[at_]), "signature: expected a name");
    while (at_ < text_.size() && (IsNameStart(text_[at_]) || IsDigit(text_[at_]))) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  constexpr int64_t Number() {
    Skip();
    int64_t value = 0;
    while (at_ < text_.size() && IsDigit(text_[at_])) value = value * 10 + (text_[at_++] - '0');
    return value;
  }

  constexpr int16_t Intern(std::string_view text) {
    for (int i = 0; i < num_names_; ++i) {
      if (names_[i].text == text) return static_cast<int16_t>(i);
    }
    Require(num_names_ < kMaxNames, "signature: too many names");
    names_[num_names_].text = text;
    return static_cast<int16_t>(num_names_++);
  }
  constexpr void Mark(int16_t name, NameSpec::Kind kind) {
    NameSpec& spec = names_[name];
    Require(spec.kind == NameSpec::Kind::kUnbound || spec.kind == kind, "signature: a name is used in two ways");
    spec.kind = kind;
  }

  constexpr int16_t Node(Expr node) {
    for (int i = 0; i < num_nodes_; ++i) {
      if (nodes_[i] == node) return static_cast<int16_t>(i);
    }
    Require(num_nodes_ < kMaxNodes, "signature: expressions are too long");
    nodes_[num_nodes_] = node;
    return static_cast<int16_t>(num_nodes_++);
  }
  constexpr int16_t Binary(ExprKind kind, int16_t left, int16_t right) {
    return Node({.kind = kind, .left = left, .right = right});
  }

  // The inputs are known while the outputs are parsed.
  constexpr int InputIndex(std::string_view name) const {
    for (int i = 0; i < num_inputs_; ++i) {
      if (inputs_[i].name == name) return i;
    }
    throw "signature: size() of an output needs the name of an input";
  }

  constexpr int16_t Expression() {
    int16_t left = Term();
    for (;;) {
      if (Peek("->")) return left;
      if (Accept("+")) {
        left = Binary(ExprKind::kAdd, left, Term());
      } else if (Accept("-")) {
        left = Binary(ExprKind::kSub, left, Term());
      } else {
        return left;
      }
    }
  }
  constexpr int16_t Term() {
    int16_t left = Factor();
    for (;;) {
      if (Accept("*")) {
        left = Binary(ExprKind::kMul, left, Factor());
      } else if (Accept("/")) {
        left = Binary(ExprKind::kFloorDiv, left, Factor());
      } else {
        return left;
      }
    }
  }
  constexpr int16_t Factor() {
    Skip();
    Require(at_ < text_.size(), "signature: an expression ends too early");
    if (IsDigit(text_[at_])) return Node({.kind = ExprKind::kConst, .value = Number()});
    if (Accept("(")) {
      const int16_t inner = Expression();
      Expect(")", "signature: ')' is missing");
      return inner;
    }
    const std::string_view name = Name();
    if (name == "size" && Accept("(")) {
      const int16_t size = Node({.kind = ExprKind::kSize, .value = InputIndex(Name())});
      Expect(")", "signature: ')' is missing");
      return size;
    }
    if (Accept("(")) {
      const int16_t left = name == "floor" ? Factor() : Expression();
      Expect(name == "floor" ? "*" : ",", "signature: expected two arguments");
      const int16_t right = name == "floor" ? Factor() : Expression();
      Expect(")", "signature: ')' is missing");
      if (name == "min") return Binary(ExprKind::kMin, left, right);
      if (name == "max") return Binary(ExprKind::kMax, left, right);
      if (name == "ceil_div") return Binary(ExprKind::kCeilDiv, left, right);
      Require(name == "floor", "signature: unknown function");
      return Binary(ExprKind::kFloorScale, left, right);
    }
    int64_t index = 0;
    if (Accept("[")) {
      index = Number();
      Expect("]", "signature: ']' is missing");
    }
    // Resolve() decides whether this is an extent, an input or an attribute.
    return Node({.kind = ExprKind::kDim, .value = index, .name = Intern(name)});
  }

  constexpr DimSpec Dim(bool is_input) {
    Skip();
    const size_t begin = at_;
    DimSpec dim;
    if (Accept("...")) {
      dim.kind = DimSpec::Kind::kRest;
      Skip();
      if (at_ < text_.size() && IsNameStart(text_[at_])) {
        const std::string_view name = Name();
        if (name == "broadcast") {
          Require(!is_input, "signature: broadcast is valid in outputs only");
          dim.kind = DimSpec::Kind::kBroadcast;
          Expect("(", "signature: '(' is missing");
          dim.name = Intern(Name());
          Expect(",", "signature: ',' is missing");
          dim.other = Intern(Name());
          Expect(")", "signature: ')' is missing");
        } else {
          dim.name = Intern(name);
          if (is_input) Mark(dim.name, NameSpec::Kind::kRest);
        }
      }
      Require(is_input || dim.name >= 0, "signature: an output's '...' needs a name");
    } else if (Accept("*")) {
      Require(is_input, "signature: '*' is valid in inputs only");
      dim.kind = DimSpec::Kind::kWildcard;
    } else if (IsNameStart(text_[at_])) {
      // A lone name, or NAME followed by =, ?= or <=; anything else is an expression.
      const size_t rewind = at_;
      const std::string_view name = Name();
      if (Accept("<=")) {
        Require(!is_input, "signature: '<=' is valid in outputs only");
        dim.kind = DimSpec::Kind::kPending;
        dim.name = Intern(name);
        Mark(dim.name, NameSpec::Kind::kPendingDim);
        dim.expr = Expression();
      } else if (Accept("?=")) {
        Require(is_input, "signature: '?=' is valid in inputs only");
        dim.kind = DimSpec::Kind::kDefault;
        dim.name = Intern(name);
        Mark(dim.name, NameSpec::Kind::kDim);
        dim.expr = Expression();
      } else if (Accept("=")) {
        Require(is_input, "signature: '=' is valid in inputs only");
        dim.kind = DimSpec::Kind::kDefine;
        dim.name = Intern(name);
        Mark(dim.name, NameSpec::Kind::kDim);
        dim.expr = Expression();
      } else if (Peek(",") || Peek("]")) {
        dim.name = Intern(name);
        dim.kind = DimSpec::Kind::kBind;  // Resolve() changes the kind of attributes and pending extents
        if (is_input) Mark(dim.name, NameSpec::Kind::kDim);
        if (!is_input) dim.expr = Node({.kind = ExprKind::kDim, .name = dim.name});
      } else {
        at_ = rewind;
        dim.expr = Expression();
      }
    } else {
      dim.expr = Expression();
    }
    dim.text = text_.substr(begin, at_ - begin);
    return dim;
  }

  constexpr void DTypeOfTensor(TensorSpec& tensor) {
    tensor.dtype_text = Name();
    if (tensor.dtype_text == "any") {
      tensor.any_dtype = true;
      return;
    }
    for (int i = 0; i < kNumDTypes; ++i) {
      if (NameOf(static_cast<DType>(i)) == tensor.dtype_text) {
        tensor.dtype = static_cast<DType>(i);
        return;
      }
    }
    for (int i = 0; i < num_variables_; ++i) {
      if (variables_[i] == tensor.dtype_text) tensor.type_variable = static_cast<int8_t>(i);
    }
    if (tensor.type_variable < 0) {
      Require(num_variables_ < 4, "signature: too many type variables");
      Require(tensor.dtype_text.size() == 1, "signature: a type variable is one letter");
      tensor.type_variable = static_cast<int8_t>(num_variables_);
      variables_[num_variables_++] = tensor.dtype_text;
    }
  }

  constexpr int Tensors(std::array<TensorSpec, kMaxTensors>& tensors, bool is_input) {
    int count = 0;
    do {
      Require(count < kMaxTensors, "signature: too many tensors");
      TensorSpec& tensor = tensors[count++];
      tensor.name = Name();
      tensor.optional = Accept("?");
      Expect(":", "signature: ':' is missing after a tensor's name");
      DTypeOfTensor(tensor);
      Expect("[", "signature: '[' is missing after a type");
      if (!Accept("]")) {
        do {
          Require(tensor.rank < kMaxDims, "signature: too many dimensions");
          const DimSpec dim = Dim(is_input);
          if (dim.kind == DimSpec::Kind::kRest || dim.kind == DimSpec::Kind::kBroadcast) {
            Require(!tensor.has_rest, "signature: only one '...' per tensor");
            tensor.has_rest = true;
          }
          tensor.dims[tensor.rank++] = dim;
        } while (Accept(","));
        Expect("]", "signature: ']' is missing");
      }
      if (Accept("...")) {
        Require(is_input, "signature: only an input can be variadic");
        tensor.variadic = true;
        Require(!Peek(","), "signature: a variadic input comes last");
      }
    } while (Accept(","));
    return count;
  }

  // Decides for each name in an expression whether it is an extent, an input or an attribute.
  constexpr void Resolve() {
    for (int i = 0; i < num_inputs_; ++i) {
      for (int n = 0; n < num_names_; ++n) {
        if (names_[n].text == inputs_[i].name && names_[n].kind == NameSpec::Kind::kUnbound) {
          names_[n].kind = NameSpec::Kind::kInput;
          names_[n].input = static_cast<int16_t>(i);
        }
      }
    }
    for (int n = 0; n < num_names_; ++n) {
      if (names_[n].kind == NameSpec::Kind::kUnbound) names_[n].kind = NameSpec::Kind::kAttribute;
    }
    for (int i = 0; i < num_nodes_; ++i) {
      if (nodes_[i].kind != ExprKind::kDim) continue;
      switch (names_[nodes_[i].name].kind) {
        case NameSpec::Kind::kInput: nodes_[i].kind = ExprKind::kInput; break;
        case NameSpec::Kind::kAttribute: nodes_[i].kind = ExprKind::kAttribute; break;
        default: break;
      }
    }
    for (int o = 0; o < num_outputs_; ++o) {
      Require(!outputs_[o].any_dtype, "signature: an output needs a type");
      for (int d = 0; d < outputs_[o].rank; ++d) {
        DimSpec& dim = outputs_[o].dims[d];
        if (dim.kind != DimSpec::Kind::kBind) continue;
        dim.kind =
            names_[dim.name].kind == NameSpec::Kind::kPendingDim ? DimSpec::Kind::kPending : DimSpec::Kind::kExpr;
        if (dim.kind == DimSpec::Kind::kPending) dim.expr = PendingBound(dim.name);
      }
    }
  }
  constexpr int16_t PendingBound(int16_t name) const {
    for (int o = 0; o < num_outputs_; ++o) {
      for (int d = 0; d < outputs_[o].rank; ++d) {
        const DimSpec& dim = outputs_[o].dims[d];
        if (dim.kind == DimSpec::Kind::kPending && dim.name == name && dim.expr >= 0) return dim.expr;
      }
    }
    throw "signature: a pending extent needs a bound (NAME<=expression) in some output";
  }

  constexpr void Parse() {
    num_inputs_ = Tensors(inputs_, true);
    Expect("->", "signature: '->' is missing");
    num_outputs_ = Tensors(outputs_, false);
    Skip();
    Require(at_ == text_.size(), "signature: text after the end");
    Resolve();
  }

  std::string_view text_;
  size_t at_ = 0;
  int num_inputs_ = 0, num_outputs_ = 0, num_names_ = 0, num_nodes_ = 0, num_variables_ = 0;
  std::array<TensorSpec, kMaxTensors> inputs_{}, outputs_{};
  std::array<NameSpec, kMaxNames> names_{};
  std::array<Expr, kMaxNodes> nodes_{};
  std::array<std::string_view, 4> variables_{};
};

/// Returns the index of the signature's tensor that an input belongs to: all tensors of a variadic input to the last.
constexpr int SpecIndex(const Signature& s, size_t input) {
  return input < static_cast<size_t>(s.num_inputs()) ? static_cast<int>(input) : s.num_inputs() - 1;
}
constexpr const TensorSpec& SpecOf(const Signature& s, size_t input) { return s.input(SpecIndex(s, input)); }

}  // namespace polyop
