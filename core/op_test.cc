// The registry, attributes, and the checks that come before every kernel, on operators of this file.
#include <algorithm>
#include <cmath>

#include "core/call.h"
#include "core/int_domain.h"
#include "core/operator.h"
#include "testing/testing.h"

namespace polyop {
namespace {

struct Sample {
  enum class Mode { kAvg, kMax };
  int64_t height = 2;
  std::array<int64_t, 2> stride = {1, 1};
  List<float, 4> scales;
  float ratio = 0.5f;
  bool aligned = false;
  Mode mode = Mode::kAvg;
  Mode code = Mode::kAvg;

  static constexpr const char* kName = "sample";
  static constexpr Signature kSignature =
      "x: T[N, C, H], y: T[C, 2*height], z?: T[M ?= N], w: I[] -> "
      "out: T[N, (H + 2*height - 1) / stride[0] + 1], count: i64[K<=max(M, 3)], extra?: i64[w]";
  static constexpr NodeName kNodes[] = {"custom::sample",
                                        NodeName("custom::sample_max").Preset("mode", "max").Rename("height", "h")};
  static constexpr std::tuple kAttributes = {
      Attr("height", &Sample::height, "rows").Between(1, 100).Also("hh", "rows"),
      Attr("stride", &Sample::stride, "steps").AtLeast(1),
      Attr("scales", &Sample::scales, "scales").GreaterThan(0),
      Attr("ratio", &Sample::ratio, "a ratio").Required(),
      Attr("aligned", &Sample::aligned, "half-pixel shift"),
      Attr("mode", &Sample::mode, "pooling").OneOf("avg", "max"),
      Attr("code", &Sample::code, "pooling as a number").Codes("avg", "max"),
  };
  static constexpr Doc kDoc = {.summary = "For tests."};
  Status Check() const {
    return stride[0] > height ? InvalidArgument("attribute 'stride' exceeds 'height'") : Status::Ok();
  }
};

Status SampleCpu(const Sample& op, const Context&, Tensor<const float, 3> x, Tensor<const float, 2>,
                 std::optional<Tensor<const float, 1>> z, Tensor<const int64_t, 0>, Tensor<float, 2> out,
                 Pending<int64_t, 1> count, std::optional<Tensor<int64_t, 1>> extra) {
  std::fill_n(out.data(), out.size(), op.ratio + static_cast<float>(x.size()));
  Tensor<int64_t, 1> found;
  POLYOP_RETURN_IF_ERROR(count.Allocate(2, &found));
  found[0] = z ? z->size() : -1;
  found[1] = extra ? extra->size() : -1;
  if (extra) std::fill_n(extra->data(), extra->size(), 7);
  return Status::Ok();
}
POLYOP_KERNEL(Sample, Device::kCpu, SampleF32, SampleCpu);

struct Variadic {
  static constexpr const char* kName = "variadic_sample";
  static constexpr Signature kSignatures[] = {"r: f32[R], xs: f32[N, *]... -> y: f32[N]",
                                              "r: f32[R, 2], xs: f32[N, *]... -> y: f32[N, 2]"};
  static constexpr NodeName kNodes[] = {"custom::variadic_sample"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {};
};
template <int kRank>
Status VariadicCpu(const Variadic&, const Context&, Tensor<const float, kRank>, TensorList<const float, 2> xs,
                   Tensor<float, kRank> y) {
  std::fill_n(y.data(), y.size(), 0.0f);
  for (const auto& x : xs) y[0] += static_cast<float>(x.dim(1));
  return Status::Ok();
}
POLYOP_KERNEL(Variadic, Device::kCpu, VariadicOne, VariadicCpu<1>);
POLYOP_KERNEL(Variadic, Device::kCpu, VariadicTwo, VariadicCpu<2>);

struct Empty {
  static constexpr const char* kName = "empty_sample";
  static constexpr Signature kSignature = "x: f32[N, M] -> y: f32[N, M], keep: i64[K<=N]";
  static constexpr NodeName kNodes[] = {"custom::empty_sample"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {};
};
Status EmptyCpu(const Empty&, const Context&, Tensor<const float, 2>, Tensor<float, 2>, Pending<int64_t, 1>) {
  return Internal("the kernel ran");
}
POLYOP_KERNEL(Empty, Device::kCpu, EmptyF32, EmptyCpu);

struct Finds {
  int64_t rows = 0;
  int64_t less = 0;
  static constexpr const char* kName = "finds_sample";
  static constexpr Signature kSignature = "x: f32[N] -> y: f32[K<=N, N - less]";
  static constexpr NodeName kNodes[] = {"custom::finds_sample"};
  static constexpr std::tuple kAttributes = {Attr("rows", &Finds::rows, "how many are found"),
                                             Attr("less", &Finds::less, "fewer columns")};
  static constexpr Doc kDoc = {};
};
Status FindsCpu(const Finds& op, const Context&, Tensor<const float, 1>, Pending<float, 2> y) {
  Tensor<float, 2> out;
  POLYOP_RETURN_IF_ERROR(y.Allocate(op.rows, &out));
  std::fill_n(out.data(), out.size(), 0.0f);
  return Status::Ok();
}
POLYOP_KERNEL(Finds, Device::kCpu, FindsF32, FindsCpu);

class NoOutputs : public OutputSource {
 public:
  bool Wanted(int) override { return true; }
  Status Allocate(int, DType, const Shape&, void**) override { return Internal("nothing is allocated"); }
};

using testing::ExpectAttributeError;
using testing::ExpectError;
using testing::HostTensor;

HostTensor F32(const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); }
HostTensor Scalar(int64_t v) { return HostTensor::Full(DType::kI64, {}, static_cast<double>(v)); }

TEST(Op, RunsWithOptionalTensors) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Sample{}, {F32({2, 3, 4}), F32({3, 4}), HostTensor::Absent(), Scalar(3)}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2, 8]");
  EXPECT_EQ(out[0].at(0), 24.5);
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{-1, 3}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{7, 7, 7}));

  testing::RunOptions two;
  two.wanted_outputs = 2;
  const HostTensor one_element = HostTensor::Full(DType::kI64, {1}, 3);  // serves as a scalar
  ASSERT_TRUE(testing::Run(Sample{}, {F32({2, 3, 4}), F32({3, 4}), F32({9}), one_element}, &out, two).ok());
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{9, -1}));
}

TEST(Op, ErrorsNameTensorWantedAndGot) {
  const HostTensor x = F32({2, 3, 4}), y = F32({3, 4}), none = HostTensor::Absent();
  ExpectError(Sample{}, {F32({2, 3}), y, none, Scalar(1)}, {"'x' has rank 2", "[2, 3]", "rank 3: [N, C, H]"});
  ExpectError(Sample{}, {x, F32({4, 4}), none, Scalar(1)}, {"'y'", "dimension 0 is 4, wanted C = 3 as in 'x'"});
  ExpectError(Sample{}, {x, F32({3, 5}), none, Scalar(1)}, {"'y'", "dimension 1 is 5, wanted 2*height = 4"});
  ExpectError(Sample{}, {x, y, none, HostTensor::Full(DType::kI64, {2}, 1)}, {"'w'", "wanted a scalar"});
  ExpectError(Sample{}, {x, y, none, Scalar(-3)}, {"output 'extra'", "[-3]", "negative"});
  ExpectError(Sample{}, {x, y, none, Scalar(int64_t{1} << 62)}, {"output 'extra'", "overflows"});
  ExpectError(Sample{}, {none, y, none, Scalar(1)}, {"'x' was left out"});
  ExpectError(Sample{}, {x, y}, {"2 inputs came, wanted 4"});
  ExpectError(Sample{}, {x, y, none, Scalar(1), x}, {"5 inputs came, wanted 4 at most"});
  ExpectError(Sample{}, {x, y, none, F32({})}, {"f32[]", "there is (x: f32, y: f32, z: f32, w: i64)"});
}

TEST(Op, VariadicAndSeveralSignatures) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Variadic{}, {F32({5}), F32({2, 3}), F32({2, 7})}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2]");
  EXPECT_EQ(out[0].at(0), 10);
  ASSERT_TRUE(testing::Run(Variadic{}, {F32({5, 2}), F32({2, 3})}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2, 2]");
  ExpectError(Variadic{}, {F32({5}), F32({2, 3}), F32({3, 3})}, {"'xs'", "dimension 0 is 3, wanted N = 2"});
  ExpectError(Variadic{}, {F32({5, 2, 1}), F32({2, 3})}, {"'r' has rank 3"});
  ExpectError(Variadic{}, {F32({5})}, {"1 inputs came, wanted 2 or more"});
  for (size_t count : {17, 23, 24, 40, 300}) {
    std::vector<HostTensor> inputs(count + 1, F32({2, 3}));
    inputs[0] = F32({5});
    ExpectError(Variadic{}, inputs, {Concat(count, " tensors came for 'xs', at most 16")});
  }
}

TEST(Op, ShapesOfAnyLengthAreRefusedNotStored) {
  const std::vector<int64_t> ones(40, 1);
  const Shape shape{std::span<const int64_t>(ones)};
  EXPECT_EQ(shape.rank(), 40);
  EXPECT_EQ(shape.NumElements(), std::nullopt);
  float value = 1;
  const AnyTensor inputs[] = {{&value, DType::kF32, true, shape}, {&value, DType::kF32, true, {1, 4}}};
  const Variadic op;
  NoOutputs none;
  PreparedCall call;
  const Status status = Prepare(*FindOp("variadic_sample"), Device::kCpu, &op, inputs, none, &call);
  EXPECT_NE(status.message().find("'r' has 40 dimensions, at most 8"), std::string::npos) << status.message();
}

// Where no output can have an element there is nothing to compute, however large the other extents are.
TEST(Op, EmptyCallsAreAnsweredWithoutAKernel) {
  std::vector<HostTensor> out;
  const int64_t huge = int64_t{1} << 40;
  ASSERT_TRUE(testing::Run(Empty{}, {F32({0, huge})}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), Concat("[0, ", huge, "]"));
  EXPECT_EQ(ToString(out[1].shape()), "[0]");
  // Something may be found, so the kernel is asked.
  const Status status = testing::Run(Empty{}, {F32({2, 0})}, &out);
  EXPECT_EQ(status.message(), "the kernel ran");
}

TEST(Op, FoundExtentsStayWithinTheirBound) {
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(Finds{3}, {F32({3})}, &out).ok());
  const Status more = testing::Run(Finds{4}, {F32({3})}, &out);
  EXPECT_EQ(more.message(), "output 0 has 4 rows of at most 3");
  EXPECT_FALSE(testing::Run(Finds{-2}, {F32({3})}, &out).ok());
  // An extent that is negative is not one that is found.
  ExpectError(Finds{0, 5}, {F32({3})}, {"output 'y'", "[3, -2]", "negative"});
}

TEST(Attributes, AreConvertedAndChecked) {
  const Op& op = *FindOp("sample");
  Params params;
  const AttrValue half = AttrValue::Float(0.25);
  ASSERT_TRUE(testing::MakeParams(op,
                                  {{"ratio", AttrValue::Int(2)},
                                   {"hh", AttrValue::Int(9)},
                                   {"stride", AttrValue::Int(3)},
                                   {"mode", AttrValue::String("max")},
                                   {"code", AttrValue::Int(1)},
                                   {"aligned", AttrValue::Int(1)},
                                   {"scales", AttrValue::Floats({1, 2})}},
                                  &params)
                  .ok());
  const auto& s = *static_cast<const Sample*>(params.get());
  EXPECT_EQ(s.ratio, 2.0f);
  EXPECT_EQ(s.height, 9);
  EXPECT_EQ(s.stride[1], 3);
  EXPECT_TRUE(s.aligned);
  EXPECT_EQ(s.mode, Sample::Mode::kMax);
  EXPECT_EQ(s.code, Sample::Mode::kMax);
  EXPECT_EQ(s.scales.size(), 2);

  ExpectAttributeError(op, {}, {"'ratio' is missing", "float"});
  ExpectAttributeError(op, {{"ratio", half}, {"height", AttrValue::Int(0)}}, {"'height' is 0", "[1, 100]"});
  ExpectAttributeError(op, {{"ratio", half}, {"height", AttrValue::Float(2)}}, {"'height' is the float 2, wanted int"});
  ExpectAttributeError(op, {{"ratio", half}, {"stride", AttrValue::Ints({1, 2, 3})}}, {"3 values, wanted 2"});
  ExpectAttributeError(op, {{"ratio", half}, {"mode", AttrValue::String("min")}}, {"'mode' is min", "{avg, max}"});
  ExpectAttributeError(op, {{"ratio", half}, {"code", AttrValue::Int(2)}}, {"'code' is 2", "{0=avg, 1=max}"});
  ExpectAttributeError(op, {{"ratio", AttrValue::Float(NAN)}}, {"'ratio' is nan", "finite"});
  ExpectAttributeError(op, {{"ratio", half}, {"scales", AttrValue::Floats({1, 0})}}, {"'scales' is 0", "(0, inf)"});
  ExpectAttributeError(op, {{"ratio", half}, {"stride", AttrValue::Int(9)}}, {"exceeds 'height'"});
}

// What is checked is what the kernel sees: a 32-bit float.
TEST(Attributes, AreCheckedAsTheyAreStored) {
  const Op& op = *FindOp("sample");
  const AttrValue half = AttrValue::Float(0.5);
  ExpectAttributeError(op, {{"ratio", half}, {"scales", AttrValue::Floats({1e-50})}},
                       {"'scales' is 1e-50 (0 as a 32-bit number)", "(0, inf)"});
  ExpectAttributeError(op, {{"ratio", AttrValue::Float(1e39)}},
                       {"'ratio' is 1e+39 (inf as a 32-bit number)", "finite"});
  ExpectAttributeError(op, {{"ratio", AttrValue::Float(-1e300)}}, {"'ratio' is -1e+300 (-inf"});
  Params params;
  EXPECT_TRUE(testing::MakeParams(op, {{"ratio", AttrValue::Float(3.4028235e38)}}, &params).ok());
  EXPECT_TRUE(testing::MakeParams(op, {{"ratio", AttrValue::Float(1e-50)}}, &params).ok());  // 0 is in its range
}

TEST(Attributes, NodeNamesRenameAndPreset) {
  const Op& op = *FindOp("sample");
  Params params;
  ASSERT_TRUE(
      testing::MakeParams(op, {{"ratio", AttrValue::Float(1)}, {"h", AttrValue::Int(5)}}, &params, "custom::sample_max")
          .ok());
  EXPECT_EQ(static_cast<const Sample*>(params.get())->mode, Sample::Mode::kMax);
  EXPECT_EQ(static_cast<const Sample*>(params.get())->height, 5);
}

TEST(Registry, FindsByNameAndNode) {
  const NodeName* node = nullptr;
  EXPECT_EQ(FindOpByNode("custom", "sample_max", &node), FindOp("sample"));
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->domain(), "custom");
  EXPECT_EQ(FindOpByNode("mmcv", "sample", nullptr), nullptr);
  EXPECT_TRUE(
      std::is_sorted(AllOps().begin(), AllOps().end(), [](const Op* a, const Op* b) { return a->name < b->name; }));
}

TEST(Registry, RefusesNamesThatStandTwice) {
  EXPECT_TRUE(CheckRegistry().ok()) << CheckRegistry().message();
  static constexpr NodeName kFirst[] = {"custom::a", "custom::b"};
  static constexpr NodeName kSecond[] = {"custom::b"};
  Op first, second;
  first.name = "first";
  first.nodes = kFirst;
  second.name = "second";
  second.nodes = kSecond;
  EXPECT_EQ(CheckNames(std::vector<const Op*>{&first, &second}).message(),
            "operators 'first' and 'second' both answer to node custom::b");
  second.nodes = {};
  second.name = "first";
  EXPECT_EQ(CheckNames(std::vector<const Op*>{&first, &second}).message(), "two operators are called 'first'");
}

TEST(IntDomain, RoundsDownAndRefusesNonsense) {
  IntDomain d({});
  EXPECT_EQ(d.Apply(ExprKind::kFloorDiv, -7, 2), -4);
  EXPECT_EQ(d.Apply(ExprKind::kCeilDiv, 7, 2), 4);
  EXPECT_EQ(d.Apply(ExprKind::kCeilDiv, -7, 2), -3);
  EXPECT_EQ(d.FloorScale(10, 2.55), 25);
  EXPECT_EQ(d.problem(), nullptr);
  for (const double bad : {-1.0, 1e300, std::nan("")}) {
    IntDomain fresh({});
    (void)fresh.FloorScale(10, bad);
    EXPECT_NE(fresh.problem(), nullptr) << bad;
  }
  (void)d.Apply(ExprKind::kMul, int64_t{1} << 40, int64_t{1} << 40);
  EXPECT_NE(d.problem(), nullptr);
}

}  // namespace
}  // namespace polyop
