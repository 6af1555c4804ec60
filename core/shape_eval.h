// Evaluates a signature over any kind of extent: int64 (a call on the CPU), symbolic (shape inference),
// or a runtime's expression builder. One evaluator, so no runtime can disagree with another.
//
// A Domain provides
//   using Dim;                                        an extent
//   Dim Const(int64_t);
//   Dim Apply(ExprKind, Dim, Dim);                    kAdd … kMax
//   Dim FloorScale(Dim, double);                      floor(dim * real)
//   Dim Broadcast(Dim, Dim);
//   Dim Unknown();                                    a value that is not known now
//   Dim Pending(std::string_view name, Dim bound);    an extent that the kernel finds
//   bool SurelyDiffer(Dim, Dim);                      false when it cannot tell
//   void MustEqual(Dim wanted, Dim got);              may be left out: hears of every pair that is checked
//   std::string Text(Dim);
//   Dim Input(int input, int64_t index);              an integer inside an input tensor
//   bool InputReal(int input, int64_t index, double* real);   false: not known now
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/op.h"
#include "core/signature.h"
#include "core/tensor.h"

namespace polyop {

/// Whether a call may have this number of inputs. Trailing optional ones may be missing.
Status CheckCount(const Signature& signature, size_t got);

inline std::optional<int> RankOf(const AnyTensor& input) { return input.shape.rank(); }
inline std::optional<int> RankOf(const KnownInput& input) { return input.rank; }

/// Whether the inputs' ranks are those of the signature. A scalar may come as a tensor of one dimension.
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
  std::array<Dim, kMaxRank> dim;  // those beyond rank have no meaning
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

  /// Binds the names to the inputs' extents and checks every extent. `inputs` holds one entry per
  /// tensor; absent optional tensors have present = false or are left out at the end.
  Status Bind(std::span<const Dims<Dim>> inputs) {
    POLYOP_RETURN_IF_ERROR(CheckCount(signature_, inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].present) POLYOP_RETURN_IF_ERROR(BindNames(SpecOf(signature_, i), inputs[i]));
    }
    for (int s = 0; s < signature_.num_inputs(); ++s) BindDefaults(signature_.input(s));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].present) POLYOP_RETURN_IF_ERROR(CheckExtents(SpecOf(signature_, i), inputs[i]));
    }
    return Status::Ok();
  }

  /// The extents of output `index`, after Bind.
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
          POLYOP_RETURN_IF_ERROR(Eval(dim.expr, &bound));
          out->push_back(domain_.Pending(signature_.name(dim.name).text, bound));
          break;
        }
        default: {
          Dim value;
          POLYOP_RETURN_IF_ERROR(Eval(dim.expr, &value));
          out->push_back(value);
        }
      }
    }
    return Status::Ok();
  }

  Status Eval(int expr, Dim* out) {
    const Expr& e = signature_.expr(expr);
    switch (e.kind) {
      case ExprKind::kConst: *out = domain_.Const(e.value); return Status::Ok();
      case ExprKind::kDim:
        if (!bound_[e.name]) {
          return InvalidArgument("the size '", signature_.name(e.name).text,
                                 "' is not known: the tensor that gives it was left out");
        }
        *out = value_[e.name];
        return Status::Ok();
      case ExprKind::kInput: *out = domain_.Input(signature_.name(e.name).input, e.value); return Status::Ok();
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
  // True if an extent surely is not what is wanted.
  bool Departs(const Dim& wanted, const Dim& got) {
    if (domain_.SurelyDiffer(wanted, got)) return true;
    if constexpr (requires { domain_.MustEqual(wanted, got); }) domain_.MustEqual(wanted, got);
    return false;
  }

  // A scalar may come as a tensor of one element.
  static bool IsScalarAsVector(const TensorSpec& spec, const Dims<Dim>& got) {
    return spec.rank == 0 && !spec.has_rest && got.rank == 1;
  }

  Status BindNames(const TensorSpec& spec, const Dims<Dim>& got) {
    if (IsScalarAsVector(spec, got)) {
      if (!Departs(domain_.Const(1), got.dim[0])) return Status::Ok();
      return InvalidArgument("'", spec.name, "' has shape ", TextOf(got), ", wanted a scalar");
    }
    const int rest = got.rank - (spec.rank - 1);
    if (spec.has_rest ? rest < 0 : got.rank != spec.rank) {
      return InvalidArgument("'", spec.name, "' has rank ", got.rank, " (shape ", TextOf(got), "), wanted ",
                             spec.has_rest ? "rank at least " : "rank ", spec.has_rest ? spec.rank - 1 : spec.rank,
                             ": ", WantedText(spec));
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
        } else if (Departs(value_[dim.name], got.dim[at])) {
          return InvalidArgument("'", spec.name, "' has shape ", TextOf(got), ", wanted ", WantedText(spec),
                                 ": dimension ", at, " is ", domain_.Text(got.dim[at]), ", wanted ", dim.text, " = ",
                                 domain_.Text(value_[dim.name]), " as in '", from_[dim.name], "'");
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
    for (int i = 0; !differ && i < count; ++i) differ = Departs(rest.dim[i], got.dim[at + i]);
    if (!differ) return Status::Ok();
    return InvalidArgument("'", spec.name, "' has shape ", TextOf(got), ", wanted ", WantedText(spec), " with ",
                           dim.text, " = ", TextOf(rest), " as in '", from_[dim.name], "'");
  }

  // NAME ?= expression of tensors left out, then NAME = expression.
  void BindDefaults(const TensorSpec& spec) {
    for (int d = 0; d < spec.rank; ++d) {
      const DimSpec& dim = spec.dims[d];
      if (dim.kind != DimSpec::Kind::kDefault && dim.kind != DimSpec::Kind::kDefine) continue;
      if (bound_[dim.name]) continue;
      Dim value;
      if (!Eval(dim.expr, &value).ok()) continue;  // reported where the name is used
      bound_[dim.name] = true;
      value_[dim.name] = value;
      from_[dim.name] = spec.name;
    }
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
        Dim wanted;
        if (uses_definition) {
          wanted = value_[dim.name];
        } else {
          POLYOP_RETURN_IF_ERROR(Eval(dim.expr, &wanted));
        }
        if (Departs(wanted, got.dim[at])) {
          const bool is_number = !uses_definition && signature_.expr(dim.expr).kind == ExprKind::kConst;
          return InvalidArgument("'", spec.name, "' has shape ", TextOf(got), ", wanted ", WantedText(spec),
                                 ": dimension ", at, " is ", domain_.Text(got.dim[at]), ", wanted ",
                                 is_number ? "" : dim.text, is_number ? "" : " = ", domain_.Text(wanted));
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
        return InvalidArgument("shapes ", TextOf(a), " and ", TextOf(b), " do not broadcast: ", domain_.Text(a.dim[ia]),
                               " against ", domain_.Text(b.dim[ib]), ", wanted equal extents or 1");
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
  static std::string WantedText(const TensorSpec& spec) {
    std::string text = "[";
    for (int d = 0; d < spec.rank; ++d) {
      text += d ? ", " : "";
      text += spec.dims[d].text;
    }
    return text + "]";
  }
  static Status TooManyDims(const TensorSpec& spec) {
    return InvalidArgument("output '", spec.name, "' would have more than ", kMaxRank, " dimensions");
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
};

}  // namespace polyop
