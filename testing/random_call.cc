// SPDX-License-Identifier: Apache-2.0
#include "testing/random_call.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "core/elements.h"
#include "core/input_role.h"
#include "core/int_domain.h"

namespace polyop::testing {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 16;  // per tensor: enough for all code paths, few enough to be fast

template <class T, size_t n>
T Pick(const T (&items)[n], const Draw& draw) {
  return items[draw(n)];
}

// Returns special value number `number` of a kind. Extreme values are far from 1, but finite in the type.
double Special(CallKind::Values kind, DType dtype, uint32_t number) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNonFinite[] = {kInf, NAN, -kInf};
  constexpr double kWide[] = {1e30, 1e-40, 3e4,    -1e30, -1e-40, -3e9,  3e38, 1e-40,
                              5e9,  -3e38, -1e-40, 1e13,  1e20,   1e-40, -1e20};
  constexpr double kNarrow[] = {200, 6e-8, -200, -6e-8};
  if (kind == CallKind::Values::kNonFinite) return kNonFinite[number % 3];
  return dtype == DType::kF16 ? kNarrow[number % 4] : kWide[number % 15];
}

double UnusualInteger(const Draw& draw) {
  constexpr double kIntegers[] = {0,      1,       -1, 2,  3,   -2147483648.0, 2147483647.0,
                                  9.0e18, -9.0e18, 5,  17, 100, 16777217,      2147483649.0};
  return Pick(kIntegers, draw);
}

// Returns a value in the type's range: converting an out-of-range double is undefined.
double Fit(DType dtype, double v) {
  switch (dtype) {
    case DType::kI8: return std::fmod(v, 127);
    case DType::kU8: return std::fabs(std::fmod(v, 255));
    case DType::kI16: return std::fmod(v, 32767);
    case DType::kI32: return std::fmod(v, 2147483648.0);
    case DType::kBool: return v != 0;
    default: return v;
  }
}

void FillReals(HostTensor& t, const Draw& draw) {
  constexpr double kSteps[] = {-0.0, 1, -1, 0.5, -0.5, 7.25};
  const uint32_t style = draw(8);
  const double scale = style == 0 ? 1 : style == 1 ? 8 : style == 2 ? 40 : style == 3 ? 4 : 2;
  for (int64_t i = 0; i < t.size(); ++i) {
    double v = (draw(2001) / 1000.0 - 1) * scale;
    if (style == 3) v = draw(5);       // ties, exact integers, batch indices
    if (style == 4) v = std::fabs(v);  // positive sizes
    if (style >= 6 && draw(4) == 0) v = draw(2) == 0 ? 0 : Pick(kSteps, draw);
    t.set(i, v);
  }
}

void FillIntegers(HostTensor& t, const Draw& draw) {
  const uint32_t style = draw(6);
  double sum = 0;
  for (int64_t i = 0; i < t.size(); ++i) {
    double v = draw(9);
    if (style == 0) v = sum += draw(6);  // increasing, like offsets
    if (style == 1) v = static_cast<double>(draw(3)) - 1;
    if (style == 2 && draw(3) == 0) v = UnusualInteger(draw);
    t.set(i, Fit(t.dtype(), v));
  }
}

void CountNames(const Signature& s, int expr, std::array<int, kMaxNames>* uses) {
  const Expr& e = s.expr(expr);
  if (e.kind == ExprKind::kDim && e.name >= 0) ++(*uses)[static_cast<size_t>(e.name)];
  for (const int side : {int{e.left}, int{e.right}}) {
    if (side >= 0) CountNames(s, side, uses);
  }
}

void CountNames(const Signature& s, const TensorSpec& spec, std::array<int, kMaxNames>* uses) {
  for (int d = 0; d < spec.rank; ++d) {
    const DimSpec& dim = spec.dims[static_cast<size_t>(d)];
    for (const int name : {int{dim.name}, int{dim.other}}) {
      if (name >= 0) ++(*uses)[static_cast<size_t>(name)];
    }
    if (dim.expr >= 0) CountNames(s, dim.expr, uses);
  }
}

// Returns how often the shapes of the signature use each name.
std::array<int, kMaxNames> CountNames(const Signature& s) {
  std::array<int, kMaxNames> uses{};
  for (int i = 0; i < s.num_inputs(); ++i) CountNames(s, s.input(i), &uses);
  for (int i = 0; i < s.num_outputs(); ++i) CountNames(s, s.output(i), &uses);
  return uses;
}

// The tensor and the name of an extent that occurs nowhere else in the signature, in a tensor of rank 3 or more without
// constant extents, if another input may hold indices: integers, or rows such as RoIs.
struct LongExtent {
  int input = -1, name = -1;

  static LongExtent Of(const OpSignature& resolved) {
    const Signature& s = *resolved.signature;
    const std::array<int, kMaxNames> uses = CountNames(s);
    for (int i = 0; i < s.num_inputs(); ++i) {
      const TensorSpec& spec = s.input(i);
      const std::span dims(spec.dims.data(), static_cast<size_t>(spec.rank));
      const auto is_free = [](const DimSpec& dim) { return dim.kind == DimSpec::Kind::kBind; };
      if (spec.variadic || spec.rank < 3 || !std::ranges::all_of(dims, is_free) || !HasIndices(resolved, i)) continue;
      for (const DimSpec& dim : dims) {
        if (uses[static_cast<size_t>(dim.name)] == 1) return {i, dim.name};
      }
    }
    return {};
  }

 private:
  // Returns whether an input other than `input` may hold indices.
  static bool HasIndices(const OpSignature& resolved, int input) {
    for (int i = 0; i < resolved.signature->num_inputs(); ++i) {
      const TensorSpec& other = resolved.signature->input(i);
      if (resolved.needs_value(i)) continue;  // a shape
      if (i != input && (other.rank == 2 || (other.type_variable < 0 && !IsReal(other.dtype)))) return true;
    }
    return false;
  }
};

constexpr int64_t kLong = int64_t{1} << 24;

// Fills a tensor of about kLong elements with 0, except for a few elements at both ends.
void FillEndsOnly(HostTensor& t, const Draw& draw) {
  constexpr int64_t kEnd = 64;
  std::memset(t.data<char>(), 0, static_cast<size_t>(t.size()) * SizeOf(t.dtype()));
  for (int64_t i = 0; i < std::min(kEnd, t.size()); ++i) {
    t.set(i, draw(9));
    t.set(t.size() - 1 - i, draw(9));
  }
}

// Overwrites integers, or the first component of rows of reals, by indices of which many are near the end of `extent`.
void FillIndicesNear(HostTensor& t, int64_t extent, const Draw& draw) {
  const int64_t step = IsReal(t.dtype()) && t.shape().rank() == 2 ? t.shape()[1] : 1;
  if (IsReal(t.dtype()) && t.shape().rank() != 2) return;
  for (int64_t i = 0; step > 0 && i < t.size(); i += step) {
    const int64_t index = draw(3) == 0 ? draw(3) : extent - 1 - draw(4);
    t.set(i, static_cast<double>(index));
    const double stored = t.at(i);
    if (!(stored >= 0 && stored < static_cast<double>(extent))) t.set(i, 0);  // rounded up
  }
}

// Fills rows of boxes, RoIs and the like with numbers that suit the role of an input (core/input_role.h). Indices of
// images are 0 or 1.
class RoleFiller {
 public:
  RoleFiller(HostTensor& t, const Draw& draw) : t_(t), draw_(draw) {}

  void Fill(std::string_view role) {
    const bool by_element = role == "batch_index" || role == "probability" || role == "points";
    const int64_t columns = by_element ? 1 : t_.shape()[t_.shape().rank() - 1];
    for (int64_t end = columns; at_ < t_.size(); end += columns) {
      if (role == "batch_index" || role.ends_with("rois")) Add(draw_(4) == 0);
      if (role == "probability") Add(draw_(101) / 100.0);
      if (role == "boxes" || role == "rois" || role == "quadrilaterals") AddCorners(role == "quadrilaterals");
      if (role == "rotated_boxes" || role == "rotated_rois" || role == "boxes3d") AddCenters((columns - 1) / 2);
      while (at_ < end) Add(role.starts_with("rotated") || role == "boxes3d" ? Angle() : Coordinate());
    }
  }

 private:
  double Coordinate() { return draw_(65) / 4.0; }
  double Size() { return draw_(33) / 4.0; }
  double Angle() { return (draw_(65) / 32.0 - 1) * 3; }
  void Add(double v) {
    if (at_ < t_.size()) t_.set(at_++, v);
  }
  void AddCorners(bool all) {
    const double x = Coordinate(), y = Coordinate(), right = x + Size(), bottom = y + Size();
    const std::vector ends = {x, y, right, bottom}, corners = {x, y, right, y, right, bottom, x, bottom};
    for (const double v : all ? corners : ends) Add(v);
  }
  void AddCenters(int64_t axes) {
    for (int64_t i = 0; i < axes; ++i) Add(Coordinate());
    for (int64_t i = 0; i < axes; ++i) Add(Size());
  }

  HostTensor& t_;
  const Draw& draw_;
  int64_t at_ = 0;
};

class CallMaker {
 public:
  CallMaker(const Op& op, const Kernel& kernel, const Draw& draw, const CallKind& kind)
      : op_(op),
        kernel_(kernel),
        resolved_(op.signatures[kernel.signature]),
        s_(*resolved_.signature),
        draw_(draw),
        kind_(kind) {}

  RandomCall Make() {
    RandomCall call;
    call.op = &op_;
    call.kind = kind_;
    call.params = RandomParams();
    params_ = call.params.get();
    call.optional_outputs = draw_(2) == 0;
    ends_ = draw_(4) == 0;
    counts_ = draw_(2) == 0;
    alike_ = draw_(3) == 0;
    suits_ = alike_ || counts_;
    parts_ = 1 + draw_(3);
    for (int n = 0; n < s_.num_names(); ++n) {
      value_[n] = Extent();
      const uint32_t rank = draw_(3);
      for (uint32_t i = 0; i < rank; ++i) rest_[n].push_back(Extent());
      if (alike_ && n > 0) rest_[n] = rest_[0];
    }
    VaryGroups();
    if (kind_.long_extent) long_ = LongExtent::Of(resolved_);
    for (int n = 0; n < s_.num_names() && long_.input >= 0; ++n) {
      value_[n] = n == long_.name ? kLong + draw_(5) : 1;
      rest_[n] = {};
    }
    DefineNames();
    for (int i = 0; i < s_.num_inputs(); ++i) MakeInput(i, call);
    if (kind_.broken) Break(call);
    if (kind_.values != CallKind::Values::kFinite) AddSpecials(call);
    call.extreme_attribute = extreme_attribute_;
    call.extreme = extreme_ || extreme_attribute_;
    return call;
  }

 private:
  Params RandomParams() {
    Params params = op_.DefaultParams();
    for (const AttrInfo& info : op_.attributes) {
      if (draw_(2) == 0 && !info.spec.required) continue;
      // The setter rejects values out of range and keeps the default, which is tested too. A required attribute has no
      // default.
      for (int tries = info.spec.required ? 16 : 1; tries > 0; --tries) {
        const AttrValue value = RandomAttribute(info, kind_.values != CallKind::Values::kFinite);
        if (info.set(info.spec, params.get(), value).ok()) break;
      }
    }
    return op_.check_params(params.get()).ok() ? std::move(params) : op_.DefaultParams();
  }

  AttrValue RandomAttribute(const AttrInfo& info, bool special) {
    if (info.spec.num_choices() > 0) return AttrValue::Int(draw_(static_cast<uint32_t>(info.spec.num_choices()) + 1));
    const bool list = info.type == AttrType::kInts || info.type == AttrType::kFloats;
    const uint32_t count = !list ? 1 : draw_(4) != 0 ? parts_ : 1 + draw_(3);
    AttrValue value{info.type, {}, {}, {}};
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t integer = draw_(10) == 0 ? static_cast<int64_t>(UnusualInteger(draw_)) : draw_(6);
      value.ints.push_back(integer);
      const bool is_special = special && draw_(4) == 0;
      const double number = !is_special
                                ? draw_(9) / 4.0
                                : Special(draw_(2) == 0 ? CallKind::Values::kNonFinite : CallKind::Values::kExtreme,
                                          DType::kF32, draw_(24));
      value.floats.push_back(number);
      // Rounding errors of huge values exceed a threshold of 0.
      extreme_attribute_ |= is_special || (number == 0 && kind_.values == CallKind::Values::kExtreme);
    }
    return value;
  }

  int64_t Extent() {
    constexpr int64_t kExtents[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33};
    constexpr int64_t kHuge[] = {
        0, 0, 1, 2, 3, (int64_t{1} << 24) + 3, int64_t{1} << 31, (int64_t{1} << 32) + 16, int64_t{1} << 40};
    return kind_.huge_extents ? Pick(kHuge, draw_) : Pick(kExtents, draw_);
  }

  // Lets the extents of all groups after the first one be smaller than those of the first one in many calls, or one of
  // them 0, as those of indices and updates may be.
  void VaryGroups() {
    std::vector<Shape*> groups;
    for (int n = 0; n < s_.num_names(); ++n) {
      if (s_.name(n).kind == NameSpec::Kind::kRest) groups.push_back(&rest_[n]);
    }
    if (groups.size() < 2 || groups[0]->rank() == 0) return;
    const uint32_t way = draw_(4);
    if (way == 3) return;
    Shape part = *groups[0];
    if (way == 0) {
      const int d = static_cast<int>(draw_(static_cast<uint32_t>(part.rank())));
      part[d] = 0;
      if (draw_(2) == 0) (*groups[0])[d] = 1;
    }
    for (int d = 0; way == 1 && d < part.rank(); ++d) {
      part[d] = draw_(static_cast<uint32_t>(std::min(part[d], kMaxElements)) + 1);
    }
    for (size_t g = 1; g < groups.size(); ++g) *groups[g] = part;
  }

  // Evaluates `NAME = expression`, which inputs before the one that has it may use.
  void DefineNames() {
    for (int i = 0; i < s_.num_inputs(); ++i) {
      const TensorSpec& spec = s_.input(i);
      for (int d = 0; d < spec.rank; ++d) {
        if (spec.dims[d].kind == DimSpec::Kind::kDefine) value_[spec.dims[d].name] = Eval(spec.dims[d].expr);
      }
    }
  }

  void MakeInput(int i, RandomCall& call) {
    const TensorSpec& spec = s_.input(i);
    uint32_t copies = !spec.variadic ? 1 : draw_(4) != 0 ? parts_ : 1 + draw_(4);
    if (spec.variadic && kind_.many_tensors) copies = draw_(41);
    for (uint32_t copy = 0; copy < copies; ++copy) {
      if (spec.optional && draw_(3) == 0) {
        call.inputs.push_back(HostTensor::Absent());
        continue;
      }
      const DType dtype = spec.any_dtype ? DType::kF32 : kernel_.inputs[i];
      Shape shape = FittingShape(spec);
      for (int d = 0; d < shape.rank(); ++d) shape[d] = std::max<int64_t>(0, shape[d]);
      if (i == long_.input) {
        call.inputs.push_back(HostTensor(dtype, shape, !kind_.misaligned));
        FillEndsOnly(call.inputs.back(), draw_);
        continue;
      }
      if (shape.NumElements().value_or(kMaxElements + 1) > kMaxElements) shape = Emptied(shape);
      HostTensor t(dtype, shape, !kind_.misaligned);
      IsReal(dtype) ? FillReals(t, draw_) : FillIntegers(t, draw_);
      const std::string_view role = RoleOf(spec);
      if (alike_ && IsReal(dtype) && shape.rank() == 2) FillFirstColumn(t);
      if (ends_ && !IsReal(dtype) && shape.rank() == 1 && t.size() > 0 && !call.inputs.empty()) {
        FillEnds(t, call.inputs.back());
      } else if (alike_ && !IsReal(dtype)) {
        for (int64_t e = 0; e < t.size(); ++e) t.set(e, draw_(2));
      }
      if (role == "decay_rates" || role == "step_sizes") {
        // A growing state overflows in float, but not in the reference.
        const double sign = role == "step_sizes" ? 1 : -1;
        for (int64_t e = 0; e < t.size(); ++e) t.set(e, sign * std::fabs(t.at(e)));
      } else if (suits_ && !role.empty()) {
        RoleFiller(t, draw_).Fill(role);
      }
      if (long_.input >= 0 && draw_(8) != 0) FillIndicesNear(t, value_[long_.name], draw_);
      // Values that determine a shape are mostly small; otherwise nearly all calls would be invalid.
      if (resolved_.needs_value(i) && draw_(6) != 0) {
        for (int64_t e = 0; e < t.size(); ++e)
          t.set(e, IsReal(dtype) ? (e < 2 ? 1 : 0.25 + draw_(12) / 4.0) : draw_(9));
        for (const auto& [at, value] : values_) {
          if (at.first == i && at.second < t.size()) t.set(at.second, value);
        }
      }
      call.inputs.push_back(std::move(t));
    }
  }

  // Returns a shape without elements instead of one that is too large; checks of extents are the same.
  Shape Emptied(Shape shape) {
    if (!kind_.huge_extents) return Shape{0};
    shape[static_cast<int>(draw_(static_cast<uint32_t>(shape.rank())))] = 0;
    return shape.NumElements() ? shape : Shape{0};
  }

  // Changes the type, an extent or the rank of one input so that it violates the signature.
  void Break(RandomCall& call) {
    if (call.inputs.empty()) return;
    HostTensor& t = call.inputs[draw_(static_cast<uint32_t>(call.inputs.size()))];
    if (!t.present()) return;
    const uint32_t way = draw_(3);
    DType dtype = t.dtype();
    Shape shape = t.shape();
    if (way == 0) {
      dtype = static_cast<DType>(draw_(kNumDTypes));
    } else if (way == 1 && shape.rank() > 0) {
      int64_t& extent = shape[static_cast<int>(draw_(static_cast<uint32_t>(shape.rank())))];
      extent = extent == 0 || draw_(2) == 0 ? extent + 1 : extent - 1;
    } else if (!shape.full()) {
      shape.push_back(1);
    }
    if (shape.NumElements().value_or(kMaxElements + 1) > kMaxElements) return;
    t = HostTensor(dtype, shape, !kind_.misaligned);
    IsReal(dtype) ? FillReals(t, draw_) : FillIntegers(t, draw_);
  }

  // Writes special values to few or many elements of one real input.
  void AddSpecials(RandomCall& call) {
    std::vector<HostTensor*> real;
    for (HostTensor& t : call.inputs) {
      if (t.present() && IsReal(t.dtype()) && t.size() > 0) real.push_back(&t);
    }
    if (real.empty()) return;
    HostTensor& t = *real[draw_(static_cast<uint32_t>(real.size()))];
    const bool many = draw_(4) == 0;
    const int64_t count = many ? (t.size() + 3) / 4 : 1 + draw_(3);
    const uint32_t first = draw_(30);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = draw_(static_cast<uint32_t>(t.size()));
      t.set(at, Special(kind_.values, t.dtype(), first + static_cast<uint32_t>(i)));
    }
    (kind_.values == CallKind::Values::kExtreme ? extreme_ : call.has_non_finite) = true;
  }

  // Fills the first column with 0 and 1, like batch indices of regions of interest.
  void FillFirstColumn(HostTensor& t) {
    const int64_t columns = t.shape()[1];
    for (int64_t i = 0; columns > 0 && i < t.size(); i += columns) t.set(i, draw_(4) == 0);
  }

  // Fills the tensor with the ends of consecutive parts of the previous tensor, or with their lengths.
  void FillEnds(HostTensor& t, const HostTensor& parts) {
    const int64_t total = parts.present() && parts.shape().rank() > 0 ? parts.shape()[0] : 0;
    int64_t end = 0;
    for (int64_t i = 0; i < t.size(); ++i) {
      const auto left = static_cast<uint32_t>(std::min<int64_t>(total - end, kMaxElements));
      end += i + 1 == t.size() ? total - end : draw_(left + 1);
      t.set(i, static_cast<double>(end));
    }
    for (int64_t i = t.size() - 1; counts_ && i > 0; --i) t.set(i, t.at(i) - t.at(i - 1));
  }

  Shape FittingShape(const TensorSpec& spec) {
    Shape shape;
    for (int d = 0; d < spec.rank; ++d) {
      const DimSpec& dim = spec.dims[d];
      if (dim.kind == DimSpec::Kind::kRest) {
        const Shape& rest = dim.name >= 0 ? rest_[dim.name] : anonymous_;
        for (int64_t e : rest.span()) shape.push_back(e);
      } else if (dim.kind == DimSpec::Kind::kBind || dim.kind == DimSpec::Kind::kDefault) {
        shape.push_back(value_[dim.name]);
      } else if (dim.kind == DimSpec::Kind::kWildcard) {
        shape.push_back(kind_.huge_extents ? Extent() : draw_(9));
      } else {
        shape.push_back(Eval(dim.expr));
        if (dim.kind == DimSpec::Kind::kDefine) value_[dim.name] = shape[shape.rank() - 1];
      }
    }
    return shape;
  }

  int64_t Eval(int expr) {
    const Expr& e = s_.expr(expr);
    IntDomain domain({});
    double real = 0;
    int64_t integer = 0;
    switch (e.kind) {
      case ExprKind::kConst: return e.value;
      case ExprKind::kDim: return value_[e.name];
      case ExprKind::kInput: return static_cast<int64_t>(ValueOf(e, [&] { return static_cast<double>(draw_(5)); }));
      case ExprKind::kAttribute:
        op_.attributes[resolved_.attribute_of_name[e.name]].number(params_, e.value, &real, &integer);
        return integer;
      case ExprKind::kFloorScale: {
        const int64_t left = Eval(e.left);
        const Expr& scale = s_.expr(e.right);
        if (scale.kind == ExprKind::kInput) {
          real = ValueOf(scale, [&] { return 0.25 + draw_(12) / 4.0; });
        } else {
          op_.attributes[resolved_.attribute_of_name[scale.name]].number(params_, scale.value, &real, &integer);
        }
        const int64_t result = domain.FloorScale(left, real);
        return domain.problem() == nullptr && result < kMaxElements ? result : 0;
      }
      default: {
        const int64_t left = Eval(e.left), right = Eval(e.right);
        const int64_t result = domain.Apply(e.kind, left, right);
        return domain.problem() == nullptr && result < kMaxElements ? result : 0;
      }
    }
  }

  // Returns the value of an input's element that determines an extent of another input, which is drawn once.
  template <class DrawValue>
  double ValueOf(const Expr& e, const DrawValue& draw_value) {
    const auto [found, is_new] = values_.try_emplace({s_.name(e.name).input, e.value}, 0.0);
    if (is_new) found->second = draw_value();
    return found->second;
  }

  const Op& op_;
  const Kernel& kernel_;
  const OpSignature& resolved_;
  const Signature& s_;
  const Draw& draw_;
  const CallKind kind_;
  const void* params_ = nullptr;
  std::array<int64_t, kMaxNames> value_{};
  std::array<Shape, kMaxNames> rest_{};
  std::map<std::pair<int, int64_t>, double> values_;  // of elements (input, index) that determine extents of inputs
  Shape anonymous_{2, 3};
  bool extreme_ = false, extreme_attribute_ = false;
  LongExtent long_;      // of a call of kind long_extent
  bool ends_ = false;    // integer vectors are the ends of parts, …
  bool counts_ = false;  // … or their lengths
  bool alike_ = false;   // groups of extents are equal, integers are 0 or 1
  bool suits_ = false;   // RoIs, boxes and the like are valid: two thirds of the calls, without a draw, for the corpus
  uint32_t parts_ = 1;   // the usual length of lists and variadic inputs, which are equal in some operators
};

}  // namespace

std::string RandomCall::Text() const {
  std::string text = Concat(op->name, "(");
  for (const AttrInfo& info : op->attributes) {
    text += Concat(info.spec.name, "=", ToString(info.get(info.spec, params.get())), " ");
  }
  text += ";";
  for (const HostTensor& t : inputs) {
    text += t.present() ? Concat(" ", NameOf(t.dtype()), ToString(t.shape())) : " (none)";
  }
  return text + ")";
}

bool IsBatch(const Signature& s, const TensorSpec& spec, int name) {
  if (spec.rank == 0) return false;
  const DimSpec& first = spec.dims[0];
  if (s.name(name).kind == NameSpec::Kind::kRest) return first.kind == DimSpec::Kind::kRest && first.name >= 0;
  return first.kind == DimSpec::Kind::kBind && first.name == name;
}

std::vector<int> BatchNames(const Signature& s) {
  const std::array<int, kMaxNames> uses = CountNames(s);
  std::vector<int> names;
  int all_of_groups = 0;
  for (int name = 0; name < s.num_names(); ++name) {
    if (s.name(name).kind == NameSpec::Kind::kRest) all_of_groups += uses[static_cast<size_t>(name)];
  }
  for (int name = 0; name < s.num_names(); ++name) {
    int of_inputs = 0, of_outputs = 0;
    for (int i = 0; i < s.num_inputs(); ++i) of_inputs += IsBatch(s, s.input(i), name) ? 1 : 0;
    for (int o = 0; o < s.num_outputs(); ++o) of_outputs += IsBatch(s, s.output(o), name) ? 1 : 0;
    const bool group = s.name(name).kind == NameSpec::Kind::kRest;
    const int all = group ? std::exchange(all_of_groups, -1) : uses[static_cast<size_t>(name)];  // groups once
    if (of_inputs > 0 && of_outputs == s.num_outputs() && all == of_inputs + of_outputs) names.push_back(name);
  }
  return names;
}

bool HasLongExtent(const Op& op) {
  return std::ranges::any_of(op.signatures, [](const OpSignature& s) { return LongExtent::Of(s).input >= 0; });
}

RandomCall MakeRandomCall(const Op& op, const Draw& draw, const CallKind& kind) {
  std::vector<const Kernel*> kernels, real;
  for (const Kernel& k : op.kernels) {
    if (k.device != Device::kCpu) continue;
    if (kind.long_extent && LongExtent::Of(op.signatures[static_cast<size_t>(k.signature)]).input < 0) continue;
    kernels.push_back(&k);
    const Signature& s = *op.signatures[static_cast<size_t>(k.signature)].signature;
    for (int i = 0; i < s.num_inputs(); ++i) {
      if (s.input(i).any_dtype || !IsReal(k.inputs[static_cast<size_t>(i)])) continue;
      real.push_back(&k);
      break;
    }
  }
  if (kind.values != CallKind::Values::kFinite && !real.empty()) kernels = real;  // special values are real
  const Kernel& kernel = *kernels[draw(static_cast<uint32_t>(kernels.size()))];
  return CallMaker(op, kernel, draw, kind).Make();
}

RandomCall MakeRandomCall(const Op& op, const Draw& draw) {
  CallKind kind;
  const uint32_t values = draw(4);
  if (values == 0) kind.values = CallKind::Values::kNonFinite;
  if (values == 1) kind.values = CallKind::Values::kExtreme;
  kind.huge_extents = draw(16) == 0;
  kind.many_tensors = draw(8) == 0;
  kind.misaligned = draw(2) == 0;
  kind.broken = draw(8) == 0;
  return MakeRandomCall(op, draw, kind);
}

RandomCall MakeValidCall(const Op& op, const Draw& draw, const CallKind& kind, int tries) {
  RandomCall call = MakeRandomCall(op, draw, kind);
  std::vector<HostTensor> outputs;
  for (int i = 1; i < tries && !RunOnce(call, &outputs).ok(); ++i) call = MakeRandomCall(op, draw, kind);
  return call;
}

double SecondsEach(double usual) {
  const char* text = std::getenv("POLYOP_FUZZ_SECONDS");
  return text != nullptr ? std::atof(text) : usual;
}

uint32_t CallsEach(uint32_t usual) {
  const char* text = std::getenv("POLYOP_CALLS_FACTOR");
  return usual * (text != nullptr ? static_cast<uint32_t>(std::max(1, std::atoi(text))) : 1);
}

}  // namespace polyop::testing
