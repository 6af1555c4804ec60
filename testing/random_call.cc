#include "testing/random_call.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/call.h"
#include "core/cuda_context.h"
#include "core/elements.h"
#include "core/int_domain.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/thread_pool.h"

namespace polyop::testing {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 22;  // per tensor: enough for every path, small enough to be quick

template <class T, size_t n>
T Pick(const T (&items)[n], const Draw& draw) {
  return items[draw(n)];
}

double HostileReal(const Draw& draw) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kReals[] = {0, -0.0, 1, -1, 0.5, -0.5, 1e-40, 1e30, -1e30, 3e9, -3e9, kInf, -kInf, NAN, 7.25, 1e9};
  return Pick(kReals, draw);
}

double HostileInteger(const Draw& draw) {
  constexpr double kIntegers[] = {0, 1, -1, 2, 3, -2147483648.0, 2147483647.0, 9.0e18, -9.0e18, 5, 17, 100};
  return Pick(kIntegers, draw);
}

// A value that every type can hold: converting an out-of-range double is undefined.
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
  const uint32_t style = draw(8);
  const double scale = style == 0 ? 1 : style == 1 ? 8 : style == 2 ? 40 : style == 3 ? 4 : 2;
  for (int64_t i = 0; i < t.size(); ++i) {
    double v = (draw(2001) / 1000.0 - 1) * scale;
    if (style == 3) v = draw(5);       // ties, exact integers, batch indices
    if (style == 4) v = std::fabs(v);  // positive sizes
    if (style >= 6 && draw(4) == 0) v = HostileReal(draw);
    t.set(i, v);
  }
}

void FillIntegers(HostTensor& t, const Draw& draw) {
  const uint32_t style = draw(6);
  double sum = 0;
  for (int64_t i = 0; i < t.size(); ++i) {
    double v = draw(9);
    if (style == 0) v = sum += draw(6);  // rising ends, as offsets are
    if (style == 1) v = static_cast<double>(draw(3)) - 1;
    if (style == 2 && draw(3) == 0) v = HostileInteger(draw);
    t.set(i, Fit(t.dtype(), v));
  }
}

class CallMaker {
 public:
  CallMaker(const Op& op, const Kernel& kernel, const Draw& draw)
      : op_(op), kernel_(kernel), resolved_(op.signatures[kernel.signature]), s_(*resolved_.signature), draw_(draw) {}

  RandomCall Make() {
    RandomCall call;
    call.op = &op_;
    call.params = RandomParams();
    params_ = call.params.get();
    call.optional_outputs = draw_(2) == 0;
    ends_ = draw_(4) == 0;
    alike_ = draw_(3) == 0;
    parts_ = 1 + draw_(3);
    for (int n = 0; n < s_.num_names(); ++n) {
      constexpr int64_t kExtents[] = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33};
      value_[n] = Pick(kExtents, draw_);
      const uint32_t rank = draw_(3);
      for (uint32_t i = 0; i < rank; ++i) rest_[n].push_back(Pick(kExtents, draw_));
      if (alike_ && n > 0) rest_[n] = rest_[0];
    }
    for (int i = 0; i < s_.num_inputs(); ++i) MakeInput(i, call);
    return call;
  }

 private:
  Params RandomParams() {
    Params params = op_.DefaultParams();
    for (const AttrInfo& info : op_.attributes) {
      if (draw_(2) == 0 && !info.spec.required) continue;
      // Out of range is refused by the setter, which leaves the default: that is tested too. A required attribute has
      // none.
      for (int tries = info.spec.required ? 16 : 1; tries > 0; --tries) {
        if (info.set(info.spec, params.get(), RandomAttribute(info)).ok()) break;
      }
    }
    return op_.check_params(params.get()).ok() ? std::move(params) : op_.DefaultParams();
  }

  AttrValue RandomAttribute(const AttrInfo& info) {
    if (info.spec.num_choices() > 0) return AttrValue::Int(draw_(static_cast<uint32_t>(info.spec.num_choices()) + 1));
    const bool list = info.type == AttrType::kInts || info.type == AttrType::kFloats;
    const uint32_t count = !list ? 1 : draw_(4) != 0 ? parts_ : 1 + draw_(3);
    AttrValue value{info.type, {}, {}, {}};
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t integer = draw_(10) == 0 ? static_cast<int64_t>(HostileInteger(draw_)) : draw_(6);
      value.ints.push_back(integer);
      value.floats.push_back(draw_(6) == 0 ? HostileReal(draw_) : draw_(9) / 4.0);
    }
    return value;
  }

  void MakeInput(int i, RandomCall& call) {
    const TensorSpec& spec = s_.input(i);
    const uint32_t copies = !spec.variadic ? 1 : draw_(4) != 0 ? parts_ : 1 + draw_(4);
    for (uint32_t copy = 0; copy < copies; ++copy) {
      if (spec.optional && draw_(3) == 0) {
        call.inputs.push_back(HostTensor::Absent());
        continue;
      }
      DType dtype = spec.any_dtype ? DType::kF32 : kernel_.inputs[i];
      if (draw_(40) == 0) dtype = static_cast<DType>(draw_(kNumDTypes));
      Shape shape = FittingShape(spec);
      if (draw_(12) == 0 && shape.rank() > 0)
        shape[static_cast<int>(draw_(static_cast<uint32_t>(shape.rank())))] += draw_(3) - 1;
      if (draw_(60) == 0 && !shape.full()) shape.push_back(1);
      for (int d = 0; d < shape.rank(); ++d) shape[d] = std::max<int64_t>(0, shape[d]);
      if (shape.NumElements().value_or(kMaxElements + 1) > kMaxElements) shape = Shape{0};
      HostTensor t(dtype, shape);
      IsReal(dtype) ? FillReals(t, draw_) : FillIntegers(t, draw_);
      if (alike_ && IsReal(dtype) && shape.rank() == 2) FillFirstColumn(t);
      if (ends_ && !IsReal(dtype) && shape.rank() == 1 && t.size() > 0 && !call.inputs.empty()) {
        FillEnds(t, call.inputs.back());
      } else if (alike_ && !IsReal(dtype)) {
        for (int64_t e = 0; e < t.size(); ++e) t.set(e, draw_(2));
      }
      // A value that decides a shape is mostly small, or nearly every call would be refused.
      if (resolved_.needs_value(i) && draw_(6) != 0) {
        for (int64_t e = 0; e < t.size(); ++e)
          t.set(e, IsReal(dtype) ? (e < 2 ? 1 : 0.25 + draw_(12) / 4.0) : draw_(9));
      }
      call.inputs.push_back(std::move(t));
    }
  }

  // The first picture or the second one, as rows of regions of interest begin.
  void FillFirstColumn(HostTensor& t) {
    const int64_t columns = t.shape()[1];
    for (int64_t i = 0; columns > 0 && i < t.size(); i += columns) t.set(i, draw_(4) == 0);
  }

  // Rising, up to the length of the tensor before it: the ends of that tensor's parts.
  void FillEnds(HostTensor& t, const HostTensor& parts) {
    const int64_t total = parts.present() && parts.shape().rank() > 0 ? parts.shape()[0] : 0;
    int64_t end = 0;
    for (int64_t i = 0; i < t.size(); ++i) {
      end += i + 1 == t.size() ? total - end : draw_(static_cast<uint32_t>(total - end) + 1);
      t.set(i, static_cast<double>(end));
    }
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
        shape.push_back(draw_(9));
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
      case ExprKind::kInput: return draw_(5);
      case ExprKind::kAttribute:
        op_.attributes[resolved_.attribute_of_name[e.name]].number(params_, e.value, &real, &integer);
        return integer;
      case ExprKind::kFloorScale: return Eval(e.left);
      default: {
        const int64_t left = Eval(e.left), right = Eval(e.right);
        const int64_t result = domain.Apply(e.kind, left, right);
        return domain.problem() == nullptr && result < kMaxElements ? result : 0;
      }
    }
  }

  const Op& op_;
  const Kernel& kernel_;
  const OpSignature& resolved_;
  const Signature& s_;
  const Draw& draw_;
  const void* params_ = nullptr;
  std::array<int64_t, kMaxNames> value_{};
  std::array<Shape, kMaxNames> rest_{};
  Shape anonymous_{2, 3};
  bool ends_ = false;   // vectors of integers are the ends of parts
  bool alike_ = false;  // groups of extents are the same, integers are 0 or 1
  uint32_t parts_ = 1;  // the usual length of a list and of a variadic input, which belong together in some operators
};

// Outputs of bounded size; a larger one is refused as a runtime out of memory would.
class BoundedOutputs : public OutputSource {
 public:
  explicit BoundedOutputs(bool optional) : optional_(optional) {}
  bool Wanted(int) override { return optional_; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const std::optional<int64_t> count = shape.NumElements();
    if (!count) {
      wrong_ = Concat("output ", index, " was asked for with shape ", ToString(shape));
      return Internal(wrong_);
    }
    if (*count > kMaxElements * 4) return Internal("output ", index, " is larger than the test allows");
    HostTensor& t = outputs_[static_cast<size_t>(index)];
    if (t.present()) wrong_ = Concat("output ", index, " is allocated twice");
    t = HostTensor(dtype, shape);
    *data = t.data<char>();
    return Status::Ok();
  }
  const std::array<HostTensor, kMaxTensors>& outputs() const { return outputs_; }
  const std::string& wrong() const { return wrong_; }

 private:
  bool optional_;
  std::array<HostTensor, kMaxTensors> outputs_;
  std::string wrong_;
};

}  // namespace

std::string RandomCall::Text() const {
  std::string text = Concat(op->name, "(");
  for (const AttrInfo& info : op->attributes) {
    text += Concat(info.spec.name, "=", ToString(info.get(info.spec, params.get())), " ");
  }
  text += ";";
  for (const HostTensor& t : inputs) {
    text += t.present() ? Concat(" ", NameOf(t.dtype()), ToString(t.shape())) : " (left out)";
  }
  return text + ")";
}

RandomCall MakeRandomCall(const Op& op, const Draw& draw) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& k : op.kernels) {
    if (k.device == Device::kCpu) kernels.push_back(&k);
  }
  const Kernel& kernel = *kernels[draw(static_cast<uint32_t>(kernels.size()))];
  return CallMaker(op, kernel, draw).Make();
}

double SecondsEach(double usual) {
  const char* text = std::getenv("POLYOP_FUZZ_SECONDS");
  return text != nullptr ? std::atof(text) : usual;
}

Status RunOnce(const RandomCall& call, std::vector<HostTensor>* outputs) {
  std::vector<AnyTensor> views;
  for (const HostTensor& t : call.inputs) views.push_back(t.view());
  ThreadPool pool(1);
  const Context context(pool.backend());
  BoundedOutputs bounded(call.optional_outputs);
  PreparedCall prepared;
  POLYOP_RETURN_IF_ERROR(Prepare(*call.op, Device::kCpu, call.params.get(), views, bounded, &prepared));
  POLYOP_RETURN_IF_ERROR(Run(prepared, views, bounded, &context));
  outputs->assign(bounded.outputs().begin(), bounded.outputs().begin() + prepared.num_outputs);
  return Status::Ok();
}

// The CUDA kernel, or its source on the CPU: it takes what the CPU's kernel takes. Values that the latter refuses, such
// as an index out of range, are not looked at before a launch; they read and write nothing out of bounds.
std::string RunOnGpu(const RandomCall& call, bool valid) {
  if (!testing::HasGpuKernels(*call.op)) return "";
  testing::RunOptions options;
  options.device = GpuDevice();
  options.wanted_outputs = call.optional_outputs ? 99 : 1;
  options.most_elements = kMaxElements * 4;
  std::vector<HostTensor> outputs;
  const Status status = testing::RunOp(*call.op, call.params.get(), call.inputs, &outputs, options);
  return status.ok() || !valid ? "" : "the CUDA kernel refuses what the CPU takes: " + status.message();
}

std::string RunRandomCall(const RandomCall& call, std::string* outcome) {
  std::vector<AnyTensor> views;
  for (const HostTensor& t : call.inputs) views.push_back(t.view());
  const Kernel* kernel = nullptr;
  Status status = call.op->FindKernel(Device::kCpu, views, &kernel);
  if (!status.ok()) {
    *outcome = status.message();
    return status.message().empty() ? "an error without a message" : "";
  }
  std::string wrong;
  for (const std::string& isa : AvailableIsas()) {
    if (!ForceIsa(isa).ok()) return "instruction set " + isa + " cannot be forced";
    std::array<HostTensor, kMaxTensors> first;
    std::string first_message;
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      const Context context(pool.backend());
      BoundedOutputs outputs(call.optional_outputs);
      status = Call(*call.op, Device::kCpu, call.params.get(), views, outputs, &context);
      *outcome = status.message();
      if (!outputs.wrong().empty()) wrong = outputs.wrong();
      if (!status.ok() && status.message().empty()) wrong = "an error without a message";
      if (threads == 1) {
        first = outputs.outputs();
        first_message = status.message();
        continue;
      }
      if (first_message != status.message()) wrong = "the error depends on the threads: " + first_message;
      const Signature& s = *call.op->signatures[kernel->signature].signature;
      for (int o = 0; status.ok() && o < s.num_outputs(); ++o) {
        const HostTensor& t = outputs.outputs()[o];
        const bool promised = !s.output(o).optional || call.optional_outputs;
        if (t.present() != promised) wrong = Concat("output ", o, promised ? " was not made" : " was not wanted");
        if (t.present() && !t.SameBytes(first[o])) wrong = Concat("output ", o, " depends on the threads");
      }
    }
    if (!wrong.empty()) {
      wrong += " (on " + isa + ")";
      break;
    }
  }
  (void)ForceIsa("");
  return wrong.empty() ? RunOnGpu(call, status.ok()) : wrong;
}

}  // namespace polyop::testing
