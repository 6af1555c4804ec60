// The registry, attributes, and the checks that come before every kernel, on operators of this file.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "core/call.h"
#include "core/int_domain.h"
#include "core/meaning.h"
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

// Operators that share the name custom::finds_sample with Finds.
struct FindsTwo {
  int64_t step = 0;
  static constexpr const char* kName = "finds_two_sample";
  static constexpr Signature kSignature = "x: f32[N] -> y: f32[N], z: f32[N]";
  static constexpr NodeName kNodes[] = {NodeName("custom::finds_sample").When("step", 2).Rename("step", "by")};
  static constexpr std::tuple kAttributes = {
      Attr("step", &FindsTwo::step, "a step").AtLeast(2).Required().Also("pace")};
  static constexpr Doc kDoc = {};
};
Status FindsTwoCpu(const FindsTwo&, const Context&, Tensor<const float, 1>, Tensor<float, 1>, Tensor<float, 1>) {
  return Status::Ok();
}
POLYOP_KERNEL(FindsTwo, Device::kCpu, FindsTwoF32, FindsTwoCpu);

struct FindsWeighed {
  float weight = 0;
  static constexpr const char* kName = "finds_weighed_sample";
  static constexpr Signature kSignature = "x: f32[N] -> y: f32[N]";
  static constexpr NodeName kNodes[] = {NodeName("custom::finds_sample").When("weight")};
  static constexpr std::tuple kAttributes = {Attr("weight", &FindsWeighed::weight, "a weight").Required()};
  static constexpr Doc kDoc = {};
};
Status FindsWeighedCpu(const FindsWeighed&, const Context&, Tensor<const float, 1>, Tensor<float, 1>) {
  return Status::Ok();
}
POLYOP_KERNEL(FindsWeighed, Device::kCpu, FindsWeighedF32, FindsWeighedCpu);

struct Adds {
  static constexpr const char* kName = "adds_sample";
  static constexpr Signature kSignature = "x: f32[N], y: f32[N] -> z: f32[N]";
  static constexpr NodeName kNodes[] = {"custom::adds_sample"};
  static constexpr std::tuple<> kAttributes{};
  static constexpr Doc kDoc = {};
};
Status AddsCpu(const Adds&, const Context&, Tensor<const float, 1>, Tensor<const float, 1>, Tensor<float, 1>) {
  return Status::Ok();
}
POLYOP_KERNEL(Adds, Device::kCpu, AddsF32, AddsCpu);

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
  const std::vector<Meaning> meanings = MeaningsOf("custom", "sample_max");
  ASSERT_EQ(meanings.size(), 1u);
  EXPECT_EQ(meanings[0].op, FindOp("sample"));
  EXPECT_EQ(meanings[0].node->domain(), "custom");
  EXPECT_TRUE(MeaningsOf("mmcv", "sample").empty());
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

class GivenAttributes : public AttrSource {
 public:
  explicit GivenAttributes(std::map<std::string, AttrValue> values) : values_(std::move(values)) {}
  bool Get(const char* name, AttrValue* value) override {
    const auto found = values_.find(name);
    if (found != values_.end()) *value = found->second;
    return found != values_.end();
  }

 private:
  std::map<std::string, AttrValue> values_;
};

// The name of the operator that a node of custom::finds_sample with these attributes means, or the error.
std::string MeantBy(std::map<std::string, AttrValue> values) {
  GivenAttributes attributes(std::move(values));
  Meaning chosen;
  const Status status = ChooseMeaning(MeaningsOf("custom", "finds_sample"), attributes, &chosen);
  return status.ok() ? std::string(chosen.op->name) : status.message();
}

TEST(Meaning, AttributesTell) {
  const AttrValue two = AttrValue::Int(2);
  EXPECT_EQ(MeantBy({}), "finds_sample");
  EXPECT_EQ(MeantBy({{"rows", two}}), "finds_sample");
  EXPECT_EQ(MeantBy({{"by", two}}), "finds_two_sample");
  EXPECT_EQ(MeantBy({{"pace", AttrValue::Int(9)}}), "finds_two_sample");
  EXPECT_EQ(MeantBy({{"step", two}}), "finds_sample") << "such nodes write it otherwise";
  EXPECT_EQ(MeantBy({{"by", AttrValue::Int(1)}}), "finds_sample") << "too small";
  EXPECT_EQ(MeantBy({{"by", AttrValue::Float(2)}}), "finds_sample") << "no integer";
  EXPECT_EQ(MeantBy({{"weight", AttrValue::Float(0)}}), "finds_weighed_sample") << "any value";
  EXPECT_EQ(MeantBy({{"by", two}, {"weight", AttrValue::Float(1)}}),
            "attribute 'by' of 2 or more says that the node means 'finds_two_sample', and 'weight' that it means "
            "'finds_weighed_sample'");
}

TEST(Meaning, ANameMayHaveConditionsAlone) {
  const Meaning alone[] = {{FindOp("finds_weighed_sample"), FindOp("finds_weighed_sample")->nodes.data()}};
  GivenAttributes none({});
  Meaning chosen;
  EXPECT_EQ(ChooseMeaning(alone, none, &chosen).message(),
            "the node's attributes mean no operator, wanted attribute 'weight' for 'finds_weighed_sample'");
}

// Of names that a runtime takes for one.
TEST(Meaning, RequiredAttributesTellWhereNoConditionDoes) {
  const Op &sample = *FindOp("sample"), &variadic = *FindOp("variadic_sample");
  const Meaning mixed[] = {{&sample, sample.nodes.data()}, {&variadic, variadic.nodes.data()}};
  Meaning chosen;
  GivenAttributes none({}), ratio({{"ratio", AttrValue::Float(1)}});
  ASSERT_TRUE(ChooseMeaning(mixed, none, &chosen).ok());
  EXPECT_EQ(chosen.op, &variadic);
  ASSERT_TRUE(ChooseMeaning(mixed, ratio, &chosen).ok());
  EXPECT_EQ(chosen.op, &sample);
  ASSERT_TRUE(ChooseMeaning(std::span(mixed, 1), none, &chosen).ok()) << "the first says what is missing";
  EXPECT_EQ(chosen.op, &sample);
}

TEST(Meaning, CountsOutputs) {
  const std::vector<Meaning> meanings = MeaningsOf("custom", "finds_sample");
  ASSERT_EQ(meanings.size(), 3u);
  EXPECT_EQ(Widest(meanings).op, FindOp("finds_two_sample"));
  EXPECT_TRUE(CheckOutputCount(meanings, meanings[0], 1).ok());
  EXPECT_TRUE(CheckOutputCount(meanings, meanings[1], 2).ok());
  EXPECT_EQ(CheckOutputCount(meanings, meanings[0], 2).message(),
            "the node has 2 outputs and its attributes mean 'finds_sample', which has 1; 'finds_two_sample', which is "
            "meant with attribute 'by' of 2 or more, has 2; 'finds_weighed_sample', which is meant with attribute "
            "'weight', has 1");
  EXPECT_EQ(CheckOutputCount(meanings, meanings[1], 1).message(),
            "the node has 1 output and its attributes mean 'finds_two_sample', which has 2; 'finds_sample', which is "
            "meant otherwise, has 1; 'finds_weighed_sample', which is meant with attribute 'weight', has 1");
}

// Copies of operators that answer to other names.
Status CheckCopies(const char* one, std::span<const NodeName> names, const char* other,
                   std::span<const NodeName> others) {
  Op a = *FindOp(one), b = *FindOp(other);
  a.nodes = names;
  b.nodes = others;
  return CheckNames(std::vector<const Op*>{&a, &b});
}

TEST(Registry, RefusesOperatorsThatCannotShareAName) {
  static constexpr NodeName kPlain[] = {"custom::shared"};
  static constexpr NodeName kWithRows[] = {NodeName("custom::shared").When("rows")};
  static constexpr NodeName kWithWeight[] = {NodeName("custom::shared").When("weight")};
  const auto error = [](const Status& status) { return status.message(); };
  EXPECT_EQ(error(CheckCopies("finds_sample", kPlain, "finds_weighed_sample", kWithWeight)), "");
  EXPECT_EQ(error(CheckCopies("finds_sample", kWithRows, "finds_weighed_sample", kWithWeight)), "");
  EXPECT_EQ(error(CheckCopies("finds_sample", kPlain, "finds_weighed_sample", kPlain)),
            "operators 'finds_sample' and 'finds_weighed_sample' both answer to node custom::shared");
  EXPECT_EQ(
      error(CheckCopies("variadic_sample", kPlain, "finds_weighed_sample", kWithWeight)),
      "operators 'variadic_sample' and 'finds_weighed_sample' cannot share node custom::shared: one has a variadic "
      "input");
  EXPECT_EQ(error(CheckCopies("empty_sample", kPlain, "finds_two_sample", kWithWeight)),
            "operators 'empty_sample' and 'finds_two_sample' cannot share node custom::shared: 'empty_sample' has a "
            "kernel that 'finds_two_sample' has not, for the CPU and (x: f32)")
      << "the second output is of another type";
  EXPECT_EQ(
      error(CheckCopies("adds_sample", kPlain, "finds_two_sample", kWithWeight)),
      "operators 'adds_sample' and 'finds_two_sample' cannot share node custom::shared: neither has the inputs and "
      "outputs of both");
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
