// SPDX-License-Identifier: Apache-2.0
// Evaluates a signature over any kind of extent: int64 (a call on the CPU), symbolic (shape inference), or a runtime's
// expression builder. All runtimes share this evaluator, so their shapes agree.
//
// A Domain provides
//   using Dim;                                        an extent
//   Dim Const(int64_t);
//   Dim Apply(ExprKind, Dim, Dim);                    kAdd … kMax
//   Dim FloorScale(Dim, double);                      floor(dim * real)
//   Dim Broadcast(Dim, Dim);
//   Dim Unknown();                                    a value that is not known yet
//   Dim Pending(std::string_view name, Dim bound);    an extent that the kernel finds
//   bool SurelyDiffer(Dim, Dim);                      false if unknown
//   void MustEqual(Dim expected, Dim got);            optional: called for every checked pair
//   const char* problem();                            optional: "expected …" once an extent cannot be computed, else
//   null std::string Text(Dim); Dim Input(int input, int64_t index);              an integer inside an input tensor
//   bool InputReal(int input, int64_t index, double* real);   false: not known yet
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/op.h"
#include "core/signature.h"
#include "core/tensor.h"

namespace polyop {

/// Checks that a call may have this number of inputs. Trailing optional inputs may be missing.
Status CheckCount(const Signature& signature, size_t got);

inline std::optional<int> RankOf(const AnyTensor& input) { return input.shape.rank(); }
inline std::optional<int> RankOf(const KnownInput& input) { return input.rank; }

/// Returns true if the inputs' ranks match the signature. A tensor of one dimension matches a scalar.
template <class Input>
bool RanksMatch(const Signature& s, std::span<const Input> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = SpecOf(s, i);
    const std::optional<int> rank = RankOf(inputs[i]);
    if (!inputs[i].present || !rank) continue;
    const bool scalar = spec.rank == 0 && *rank <= 1;
    if (!scalar && (spec.has_rest ? *rank < spec.rank - 1 : *rank != spec.rank)) return false;
  }
  return true;
}

/// Up to kMaxRank extents of any kind.
template <class Dim>
struct Dims {
  bool present = true;
  int rank = 0;
  std::array<Dim, kMaxRank> dim;  // elements from `rank` on are undefined
  void push_back(const Dim& d) { dim[rank++] = d; }
};

template <class Domain>
class ShapeEvaluator {
 public:
  using Dim = typename Domain::Dim;

  ShapeEvaluator(const OpSignature& signature, const Op& op, const void* params, Domain& domain)
      : resolved_(signature), signature_(*signature.signature), op_(op), params_(params), domain_(domain) {
    for (int s = 0; s < signature_.num_inputs(); ++s) {
      const TensorSpec& spec = signature_.input(s);
      for (int d = 0; d < spec.rank; ++d) {
        if (spec.dims[d].kind == DimSpec::Kind::kDefine) defined_[spec.dims[d].name] = true;
      }
    }
  }

  /// Binds the names to the inputs' extents and checks every extent. `inputs` has one element per tensor; absent
  /// optional tensors have present = false, or are missing at the end.
  Status Bind(std::span<const Dims<Dim>> inputs) {
    POLYOP_RETURN_IF_ERROR(CheckCount(signature_, inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].present) POLYOP_RETURN_IF_ERROR(BindNames(SpecOf(signature_, i), inputs[i]));
    }
    for (int s = 0; s < signature_.num_inputs(); ++s) POLYOP_RETURN_IF_ERROR(BindDefaults(signature_.input(s)));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].present) POLYOP_RETURN_IF_ERROR(CheckExtents(SpecOf(signature_, i), inputs[i]));
    }
    for (int e = 0; e < signature_.num_exprs(); ++e) {
      if (signature_.expr(e).kind == ExprKind::kSize) CountElements(signature_.expr(e).value, inputs);
    }
    return Status::Ok();
  }

  /// Computes the extents of output `index`. Requires: Bind succeeded.
  Status Output(int index, Dims<Dim>* out) {
    const TensorSpec& spec = signature_.output(index);
    for (int d = 0; d < spec.rank; ++d) {
      const DimSpec& dim = spec.dims[d];
      if (!dim.several() && out->rank == kMaxRank) return TooManyDims(spec);
      switch (dim.kind) {
        case DimSpec::Kind::kRest:
          if (out->rank + rest_[dim.name].rank > kMaxRank) return TooManyDims(spec);
          for (int i = 0; i < rest_[dim.name].rank; ++i) out->push_back(rest_[dim.name].dim[i]);
          break;
        case DimSpec::Kind::kBroadcast:
          POLYOP_RETURN_IF_ERROR(Broadcast(spec, rest_[dim.name], rest_[dim.other], out));
          break;
        case DimSpec::Kind::kPending: {
          Dim bound;
          POLYOP_RETURN_IF_ERROR(EvalExtent(spec, dim, out->rank, &bound));
          out->push_back(domain_.Pending(signature_.name(dim.name).text, bound));
          break;
        }
        default: {
          Dim value;
          POLYOP_RETURN_IF_ERROR(EvalExtent(spec, dim, out->rank, &value));
          out->push_back(value);
        }
      }
    }
    return Status::Ok();
  }

  /// Adds the operands of output `index` to an error about its size: "…: N = 3 of 'points', attribute 'size' = 9".
  Status WithOperands(const Status& status, int index) {
    if (status.ok()) return status;
    std::vector<std::string> operands;
    const TensorSpec& spec = signature_.output(index);
    for (int d = 0; d < spec.rank; ++d) CollectOperands(spec.dims[d], &operands);
    return Status(status.code(), status.message() + (operands.empty() ? "" : ": ") + Join(operands));
  }

  Status Eval(int expr, Dim* out) {
    const Expr& e = signature_.expr(expr);
    switch (e.kind) {
      case ExprKind::kConst: *out = domain_.Const(e.value); return Status::Ok();
      case ExprKind::kDim:
        if (!bound_[e.name]) {
          return InvalidArgument("extent '", signature_.name(e.name).text,
                                 "' is unknown: the tensor that defines it is missing");
        }
        *out = value_[e.name];
        return Status::Ok();
      case ExprKind::kInput: *out = domain_.Input(signature_.name(e.name).input, e.value); return Status::Ok();
      case ExprKind::kSize: *out = elements_[static_cast<size_t>(e.value)]; return Status::Ok();
      case ExprKind::kAttribute: {
        double real = 0;
        int64_t integer = 0;
        bool known = false;
        POLYOP_RETURN_IF_ERROR(Number(e, &real, &integer, &known));
        *out = known ? domain_.Const(integer) : domain_.Unknown();
        return Status::Ok();
      }
      case ExprKind::kFloorScale: {
        Dim left;
        POLYOP_RETURN_IF_ERROR(Eval(e.left, &left));
        double real = 0;
        int64_t integer = 0;
        bool known = false;
        POLYOP_RETURN_IF_ERROR(Number(signature_.expr(e.right), &real, &integer, &known));
        *out = known ? domain_.FloorScale(left, real) : domain_.Unknown();
        return Status::Ok();
      }
      default: {
        Dim left, right;
        POLYOP_RETURN_IF_ERROR(Eval(e.left, &left));
        POLYOP_RETURN_IF_ERROR(Eval(e.right, &right));
        *out = domain_.Apply(e.kind, left, right);
        return Status::Ok();
      }
    }
  }

 private:
  // Counts the elements of an input, of all its tensors if it is variadic.
  void CountElements(int64_t spec, std::span<const Dims<Dim>> inputs) {
    Dim all = domain_.Const(0);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].present || SpecIndex(signature_, i) != spec) continue;
      Dim elements = domain_.Const(1);
      for (int d = 0; d < inputs[i].rank; ++d) {
        elements = domain_.Apply(ExprKind::kMul, elements, inputs[i].dim[static_cast<size_t>(d)]);
      }
      all = domain_.Apply(ExprKind::kAdd, all, elements);
    }
    elements_[static_cast<size_t>(spec)] = all;
  }

  // Returns true if `got` is known to differ from `expected`.
  bool Differs(const Dim& expected, const Dim& got) {
    if (domain_.SurelyDiffer(expected, got)) return true;
    if constexpr (requires { domain_.MustEqual(expected, got); }) domain_.MustEqual(expected, got);
    return false;
  }

  // Evaluates the expression of dimension `at` of a tensor.
  Status EvalExtent(const TensorSpec& spec, const DimSpec& dim, int at, Dim* out) {
    POLYOP_RETURN_IF_ERROR(Eval(dim.expr, out));
    return CheckComputed(spec, dim, at);
  }

  // Returns an error that names the operands if the domain could not compute an extent.
  Status CheckComputed(const TensorSpec& spec, const DimSpec& dim, int at) {
    if constexpr (requires {
                    { domain_.problem() } -> std::same_as<const char*>;
                  }) {
      if (domain_.problem() == nullptr) return Status::Ok();
      std::vector<std::string> operands;
      CollectOperands(dim, &operands);
      return InvalidArgument(IsOutput(spec) ? "output '" : "'", spec.name, "': dimension ", at, " (", dim.text,
                             "): ", domain_.problem(), ", got ", Join(operands));
    } else {
      return Status::Ok();
    }
  }

  bool IsOutput(const TensorSpec& spec) const {
    for (int o = 0; o < signature_.num_outputs(); ++o) {
      if (&spec == &signature_.output(o)) return true;
    }
    return false;
  }

  // Adds the names that determine an extent, with their values.
  void CollectOperands(const DimSpec& dim, std::vector<std::string>* operands) {
    if (dim.several()) {
      AddOperand(TextOfRest(dim.name), operands);
      if (dim.kind == DimSpec::Kind::kBroadcast) AddOperand(TextOfRest(dim.other), operands);
    } else {
      CollectOperands(dim.expr, operands);
    }
  }

  void CollectOperands(int expr, std::vector<std::string>* operands) {
    const Expr& e = signature_.expr(expr);
    const std::string_view name = e.name >= 0 ? signature_.name(e.name).text : std::string_view();
    switch (e.kind) {
      case ExprKind::kConst: return;
      case ExprKind::kDim:
        if (bound_[e.name]) {
          AddOperand(Concat(name, " = ", domain_.Text(value_[e.name]), " of '", from_[e.name], "'"), operands);
        }
        return;
      case ExprKind::kInput: {
        double real = 0;
        std::string text = Concat("'", name, "'[", e.value, "]");
        if (domain_.InputReal(signature_.name(e.name).input, e.value, &real)) {
          const bool is_integer = std::fabs(real) < 0x1p63 && real == std::trunc(real);
          text += " = " + (is_integer ? std::to_string(static_cast<int64_t>(real)) : Concat(real));
        }
        AddOperand(std::move(text), operands);
        return;
      }
      case ExprKind::kAttribute: {
        const AttrInfo& attribute = op_.attributes[resolved_.attribute_of_name[e.name]];
        AddOperand(Concat("attribute '", name, "' = ", ToString(attribute.get(attribute.spec, params_))), operands);
        return;
      }
      case ExprKind::kSize: {
        const size_t input = static_cast<size_t>(e.value);
        AddOperand(
            Concat("size of '", signature_.input(static_cast<int>(input)).name, "' = ", domain_.Text(elements_[input])),
            operands);
        return;
      }
      default: CollectOperands(e.left, operands); CollectOperands(e.right, operands);
    }
  }

  std::string TextOfRest(int name) { return Concat(TextOf(rest_[name]), " of '", from_[name], "'"); }
  static void AddOperand(std::string text, std::vector<std::string>* operands) {
    if (std::find(operands->begin(), operands->end(), text) == operands->end()) operands->push_back(std::move(text));
  }
  static std::string Join(const std::vector<std::string>& operands) {
    std::string text;
    for (const std::string& operand : operands) text += (text.empty() ? "" : ", ") + operand;
    return text;
  }

  // A tensor of shape [1] is accepted as a scalar.
  static bool IsScalarAsVector(const TensorSpec& spec, const Dims<Dim>& got) {
    return spec.rank == 0 && !spec.has_rest && got.rank == 1;
  }

  Status BindNames(const TensorSpec& spec, const Dims<Dim>& got) {
    if (IsScalarAsVector(spec, got)) {
      if (!Differs(domain_.Const(1), got.dim[0])) return Status::Ok();
      return InvalidArgument("'", spec.name, "': expected a scalar, got shape ", TextOf(got));
    }
    const int rest = got.rank - (spec.rank - 1);
    if (spec.has_rest ? rest < 0 : got.rank != spec.rank) {
      return InvalidArgument("'", spec.name, "': expected rank ", spec.has_rest ? "at least " : "",
                             spec.has_rest ? spec.rank - 1 : spec.rank, ", got ", got.rank, ShapeText(spec, got));
    }
    int at = 0;
    for (int d = 0; d < spec.rank; ++d) {
      const DimSpec& dim = spec.dims[d];
      if (dim.kind == DimSpec::Kind::kRest) {
        POLYOP_RETURN_IF_ERROR(BindRest(spec, dim, got, at, rest));
        at += rest;
        continue;
      }
      if ((dim.kind == DimSpec::Kind::kBind && !defined_[dim.name]) || dim.kind == DimSpec::Kind::kDefault) {
        if (!bound_[dim.name]) {
          bound_[dim.name] = true;
          value_[dim.name] = got.dim[at];
          from_[dim.name] = spec.name;
        } else if (Differs(value_[dim.name], got.dim[at])) {
          return InvalidArgument("'", spec.name, "': expected dimension ", at, " to be ", dim.text, " = ",
                                 domain_.Text(value_[dim.name]), " as in '", from_[dim.name], "', got ",
                                 domain_.Text(got.dim[at]), ShapeText(spec, got));
        }
      }
      ++at;
    }
    return Status::Ok();
  }

  Status BindRest(const TensorSpec& spec, const DimSpec& dim, const Dims<Dim>& got, int at, int count) {
    if (dim.name < 0) return Status::Ok();
    Dims<Dim>& rest = rest_[dim.name];
    if (!bound_[dim.name]) {
      bound_[dim.name] = true;
      from_[dim.name] = spec.name;
      for (int i = 0; i < count; ++i) rest.push_back(got.dim[at + i]);
      return Status::Ok();
    }
    bool differ = rest.rank != count;
    for (int i = 0; !differ && i < count; ++i) differ = Differs(rest.dim[i], got.dim[at + i]);
    if (!differ) return Status::Ok();
    Dims<Dim> got_rest;
    for (int i = 0; i < count; ++i) got_rest.push_back(got.dim[at + i]);
    return InvalidArgument("'", spec.name, "': expected ", dim.text, " = ", TextOf(rest), " as in '", from_[dim.name],
                           "', got ", TextOf(got_rest), ShapeText(spec, got));
  }

  // Binds `NAME ?= expression` of absent tensors, and `NAME = expression`.
  Status BindDefaults(const TensorSpec& spec) {
    for (int d = 0; d < spec.rank; ++d) {
      const DimSpec& dim = spec.dims[d];
      if (dim.kind != DimSpec::Kind::kDefault && dim.kind != DimSpec::Kind::kDefine) continue;
      if (bound_[dim.name]) continue;
      Dim value;
      if (!Eval(dim.expr, &value).ok()) continue;  // reported where the name is used
      POLYOP_RETURN_IF_ERROR(CheckComputed(spec, dim, d));
      bound_[dim.name] = true;
      value_[dim.name] = value;
      from_[dim.name] = spec.name;
    }
    return Status::Ok();
  }

  Status CheckExtents(const TensorSpec& spec, const Dims<Dim>& got) {
    if (IsScalarAsVector(spec, got)) return Status::Ok();
    int at = 0;
    for (int d = 0; d < spec.rank; ++d) {
      const DimSpec& dim = spec.dims[d];
      if (dim.kind == DimSpec::Kind::kRest) {
        at += got.rank - (spec.rank - 1);
        continue;
      }
      const bool uses_definition = dim.kind == DimSpec::Kind::kBind && defined_[dim.name] && bound_[dim.name];
      if (dim.kind == DimSpec::Kind::kExpr || dim.kind == DimSpec::Kind::kDefine || uses_definition) {
        Dim expected;
        if (uses_definition) {
          expected = value_[dim.name];
        } else {
          POLYOP_RETURN_IF_ERROR(EvalExtent(spec, dim, at, &expected));
        }
        if (Differs(expected, got.dim[at])) {
          const bool is_number = !uses_definition && signature_.expr(dim.expr).kind == ExprKind::kConst;
          return InvalidArgument("'", spec.name, "': expected dimension ", at, " to be ", is_number ? "" : dim.text,
                                 is_number ? "" : " = ", domain_.Text(expected), ", got ", domain_.Text(got.dim[at]),
                                 ShapeText(spec, got));
        }
      }
      ++at;
    }
    return Status::Ok();
  }

  Status Broadcast(const TensorSpec& spec, const Dims<Dim>& a, const Dims<Dim>& b, Dims<Dim>* out) {
    const int rank = a.rank > b.rank ? a.rank : b.rank;
    if (out->rank + rank > kMaxRank) return TooManyDims(spec);
    for (int i = 0; i < rank; ++i) {
      const int ia = i - (rank - a.rank), ib = i - (rank - b.rank);
      if (ia < 0 || ib < 0) {
        out->push_back(ia < 0 ? b.dim[ib] : a.dim[ia]);
        continue;
      }
      const Dim one = domain_.Const(1);
      if (domain_.SurelyDiffer(a.dim[ia], b.dim[ib]) && domain_.SurelyDiffer(a.dim[ia], one) &&
          domain_.SurelyDiffer(b.dim[ib], one)) {
        return InvalidArgument("shapes ", TextOf(a), " and ", TextOf(b),
                               " do not broadcast: expected equal extents or 1, got ", domain_.Text(a.dim[ia]), " and ",
                               domain_.Text(b.dim[ib]));
      }
      out->push_back(domain_.Broadcast(a.dim[ia], b.dim[ib]));
    }
    return Status::Ok();
  }

  Status Number(const Expr& e, double* real, int64_t* integer, bool* known) {
    if (e.kind == ExprKind::kInput) {
      *known = domain_.InputReal(signature_.name(e.name).input, e.value, real);
      return Status::Ok();
    }
    const AttrInfo& attribute = op_.attributes[resolved_.attribute_of_name[e.name]];
    *known = attribute.number(params_, e.value, real, integer);
    if (*known) return Status::Ok();
    return InvalidArgument("attribute '", attribute.spec.name, "' has no element ", e.value);
  }

  std::string TextOf(const Dims<Dim>& dims) {
    std::string text = "[";
    for (int i = 0; i < dims.rank; ++i) text += (i ? ", " : "") + domain_.Text(dims.dim[i]);
    return text + "]";
  }
  // " (shape [2, 3, 4] for [N, C, H, W])": the shape of an input and the signature's.
  std::string ShapeText(const TensorSpec& spec, const Dims<Dim>& got) {
    std::string text = " (shape " + TextOf(got) + " for [";
    for (int d = 0; d < spec.rank; ++d) {
      text += d ? ", " : "";
      text += spec.dims[d].text;
    }
    return text + "])";
  }
  static Status TooManyDims(const TensorSpec& spec) {
    return InvalidArgument("output '", spec.name, "': expected at most ", kMaxRank, " dimensions, got more");
  }

  const OpSignature& resolved_;
  const Signature& signature_;
  const Op& op_;
  const void* params_;
  Domain& domain_;
  std::array<bool, kMaxNames> defined_{};  // NAME = expression: other inputs' NAME is checked, not bound
  std::array<bool, kMaxNames> bound_{};
  std::array<Dim, kMaxNames> value_{};
  std::array<Dims<Dim>, kMaxNames> rest_{};
  std::array<std::string_view, kMaxNames> from_{};
  std::array<Dim, kMaxTensors> elements_{};  // of the inputs whose size() the signature uses
};

}  // namespace polyop
