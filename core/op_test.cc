// SPDX-License-Identifier: Apache-2.0
// Tests the registry, attributes, node resolution and the checks before every kernel, with operators of this file.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

#include "core/call.h"
#include "core/guard.h"
#include "core/int_domain.h"
#include "core/node_resolution.h"
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
POLYOP_PLAIN_CPU_KERNEL(Sample, SampleCpu);

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
POLYOP_PLAIN_CPU_KERNELS(Variadic, VariadicCpu, 1, 2);

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
POLYOP_PLAIN_CPU_KERNEL(Empty, EmptyCpu);

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
POLYOP_PLAIN_CPU_KERNEL(Finds, FindsCpu);

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
POLYOP_PLAIN_CPU_KERNEL(FindsTwo, FindsTwoCpu);

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
POLYOP_PLAIN_CPU_KERNEL(FindsWeighed, FindsWeighedCpu);

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
POLYOP_PLAIN_CPU_KERNEL(Adds, AddsCpu);

class NoOutputs : public OutputSource {
 public:
  bool Requested(int) override { return true; }
  Status Allocate(int, DType, const Shape&, void**) override { return Internal("nothing is allocated"); }
};

using testing::ExpectAttributeError;
using testing::ExpectError;
using testing::HostTensor;

HostTensor F32(const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 1); }
HostTensor Scalar(int64_t v) { return HostTensor::Full(DType::kI64, {}, static_cast<double>(v)); }

TEST(Doc, IsUnwrapped) {
  EXPECT_EQ(UnwrapText("one line"), "one line");
  EXPECT_EQ(UnwrapText("two  spaces\n    and a line\n      more"), "two  spaces and a line more");
  EXPECT_EQ(UnwrapText("\n  a paragraph\n  \n  another\n"), "a paragraph\n\nanother");
  EXPECT_EQ(UnwrapText(""), "");
}

TEST(Op, RunsWithOptionalTensors) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Sample{}, {F32({2, 3, 4}), F32({3, 4}), HostTensor::Absent(), Scalar(3)}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2, 8]");
  EXPECT_EQ(out[0].at(0), 24.5);
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{-1, 3}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{7, 7, 7}));

  testing::RunOptions two;
  two.requested_outputs = 2;
  const HostTensor one_element = HostTensor::Full(DType::kI64, {1}, 3);  // serves as a scalar
  ASSERT_TRUE(testing::Run(Sample{}, {F32({2, 3, 4}), F32({3, 4}), F32({9}), one_element}, &out, two).ok());
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{9, -1}));
}

TEST(Op, ErrorsNameTensorExpectedAndGot) {
  const HostTensor x = F32({2, 3, 4}), y = F32({3, 4}), none = HostTensor::Absent();
  ExpectError(Sample{}, {F32({2, 3}), y, none, Scalar(1)},
              {"'x': expected rank 3, got 2 (shape [2, 3] for [N, C, H])"});
  ExpectError(Sample{}, {x, F32({4, 4}), none, Scalar(1)},
              {"'y': expected dimension 0 to be C = 3 as in 'x', got 4 (shape [4, 4] for [C, 2*height])"});
  ExpectError(Sample{}, {x, F32({3, 5}), none, Scalar(1)},
              {"'y': expected dimension 1 to be 2*height = 4, got 5 (shape [3, 5] for [C, 2*height])"});
  ExpectError(Sample{}, {x, y, none, HostTensor::Full(DType::kI64, {2}, 1)}, {"'w': expected a scalar, got shape [2]"});
  ExpectError(Sample{}, {x, y, none, Scalar(-3)},
              {"output 'extra': expected dimension 0 (w) to be >= 0, got -3 (shape [-3])"});
  ExpectError(Sample{}, {x, y, none, Scalar(int64_t{1} << 62)},
              {"output 'extra': expected a size that fits in 64 bits, got shape [4611686018427387904]: 'w'[0] = "
               "4611686018427387904"});
  ExpectError(Sample{}, {none, y, none, Scalar(1)}, {"'x': expected a tensor, got none"});
  ExpectError(Sample{}, {x, y}, {"expected 4 inputs, got 2"});
  ExpectError(Sample{}, {x, y, none, Scalar(1), x}, {"expected 4 inputs, got 5"});
  ExpectError(Sample{}, {x, y, none, F32({})}, {"f32[]): expected (x: f32, y: f32, z: f32, w: i64)"});
}

TEST(Op, VariadicAndSeveralSignatures) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Variadic{}, {F32({5}), F32({2, 3}), F32({2, 7})}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2]");
  EXPECT_EQ(out[0].at(0), 10);
  ASSERT_TRUE(testing::Run(Variadic{}, {F32({5, 2}), F32({2, 3})}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2, 2]");
  ExpectError(Variadic{}, {F32({5}), F32({2, 3}), F32({3, 3})},
              {"'xs': expected dimension 0 to be N = 2 as in 'xs', got 3"});
  ExpectError(Variadic{}, {F32({5, 2, 1}), F32({2, 3})}, {"'r': expected rank 1, got 3"});
  ExpectError(Variadic{}, {F32({5})}, {"expected at least 2 inputs, got 1"});
  for (size_t count : {17, 23, 24, 40, 300}) {
    std::vector<HostTensor> inputs(count + 1, F32({2, 3}));
    inputs[0] = F32({5});
    ExpectError(Variadic{}, inputs, {Concat("'xs': expected at most 16 tensors, got ", count)});
  }
}

TEST(Op, RejectsShapesOfTooHighRank) {
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
  EXPECT_NE(status.message().find("'r': expected at most 8 dimensions, got 40"), std::string::npos) << status.message();
}

// Empty outputs need no kernel, even if the other extents are huge.
TEST(Op, EmptyCallsSkipTheKernel) {
  std::vector<HostTensor> out;
  const int64_t huge = int64_t{1} << 40;
  ASSERT_TRUE(testing::Run(Empty{}, {F32({0, huge})}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), Concat("[0, ", huge, "]"));
  EXPECT_EQ(ToString(out[1].shape()), "[0]");
  // The kernel may find elements, so it is called.
  const Status status = testing::Run(Empty{}, {F32({2, 0})}, &out);
  EXPECT_EQ(status.message(), "the kernel ran: inputs 'x' [2, 0]");
}

TEST(Op, RejectsFoundExtentsBeyondTheirBound) {
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(Finds{3}, {F32({3})}, &out).ok());
  const Status more = testing::Run(Finds{4}, {F32({3})}, &out);
  EXPECT_EQ(more.message(),
            "output 0: expected at most 3 rows, got 4: inputs 'x' [3]; attributes 'rows' = 4, 'less' = 0");
  EXPECT_FALSE(testing::Run(Finds{-2}, {F32({3})}, &out).ok());
  // A negative extent is an error; it is not taken for kFound.
  ExpectError(Finds{0, 5}, {F32({3})},
              {"output 'y': expected dimension 1 (N - less) to be >= 0, got -2 (shape [3, -2])"});
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
  ExpectAttributeError(op, {{"ratio", half}, {"height", AttrValue::Int(0)}},
                       {"'height': expected a number in [1, 100], got 0"});
  ExpectAttributeError(op, {{"ratio", half}, {"height", AttrValue::Float(2)}}, {"'height': expected int, got float 2"});
  ExpectAttributeError(op, {{"ratio", half}, {"stride", AttrValue::Ints({1, 2, 3})}},
                       {"'stride': expected 2 values, got 3"});
  ExpectAttributeError(op, {{"ratio", half}, {"mode", AttrValue::String("min")}},
                       {"'mode': expected one of {avg, max}, got min"});
  ExpectAttributeError(op, {{"ratio", half}, {"code", AttrValue::Int(2)}},
                       {"'code': expected one of {0=avg, 1=max}, got 2"});
  ExpectAttributeError(op, {{"ratio", AttrValue::Float(NAN)}}, {"'ratio': expected a finite number, got nan"});
  ExpectAttributeError(op, {{"ratio", half}, {"scales", AttrValue::Floats({1, 0})}},
                       {"'scales': expected a number in (0, inf), got 0"});
  ExpectAttributeError(op, {{"ratio", half}, {"stride", AttrValue::Int(9)}}, {"exceeds 'height'"});
}

// Ranges are checked after rounding to the 32-bit float that the kernel sees.
TEST(Attributes, AreCheckedAfterRounding) {
  const Op& op = *FindOp("sample");
  const AttrValue half = AttrValue::Float(0.5);
  ExpectAttributeError(op, {{"ratio", half}, {"scales", AttrValue::Floats({1e-50})}},
                       {"'scales': expected a number in (0, inf), got 1e-50 (0 as a 32-bit float)"});
  ExpectAttributeError(op, {{"ratio", AttrValue::Float(1e39)}},
                       {"'ratio': expected a finite number, got 1e+39 (inf as a 32-bit float)"});
  ExpectAttributeError(op, {{"ratio", AttrValue::Float(-1e300)}},
                       {"'ratio': expected a finite number, got -1e+300 (-inf"});
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
  const std::vector<NodeCandidate> candidates = CandidatesFor("custom", "sample_max");
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].op, FindOp("sample"));
  EXPECT_EQ(candidates[0].node->domain(), "custom");
  EXPECT_TRUE(CandidatesFor("mmcv", "sample").empty());
  EXPECT_TRUE(
      std::is_sorted(AllOps().begin(), AllOps().end(), [](const Op* a, const Op* b) { return a->name < b->name; }));
}

TEST(Registry, RejectsDuplicateNames) {
  EXPECT_TRUE(CheckRegistry().ok()) << CheckRegistry().message();
  static constexpr NodeName kFirst[] = {"custom::a", "custom::b"};
  static constexpr NodeName kSecond[] = {"custom::b"};
  Op first, second;
  first.name = "first";
  first.nodes = kFirst;
  second.name = "second";
  second.nodes = kSecond;
  EXPECT_EQ(CheckNames(std::vector<const Op*>{&first, &second}).message(),
            "operators 'first' and 'second' are both registered for node custom::b");
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

// Returns the operator that a node of custom::finds_sample with these attributes resolves to, or the error.
std::string ResolvedOp(std::map<std::string, AttrValue> values) {
  GivenAttributes attributes(std::move(values));
  NodeCandidate resolved;
  const Status status = ResolveNode(CandidatesFor("custom", "finds_sample"), attributes, &resolved);
  return status.ok() ? std::string(resolved.op->name) : status.message();
}

TEST(NodeResolution, AttributesSelectTheOperator) {
  const AttrValue two = AttrValue::Int(2);
  EXPECT_EQ(ResolvedOp({}), "finds_sample");
  EXPECT_EQ(ResolvedOp({{"rows", two}}), "finds_sample");
  EXPECT_EQ(ResolvedOp({{"by", two}}), "finds_two_sample");
  EXPECT_EQ(ResolvedOp({{"pace", AttrValue::Int(9)}}), "finds_two_sample");
  EXPECT_EQ(ResolvedOp({{"step", two}}), "finds_sample") << "such nodes use another attribute name";
  EXPECT_EQ(ResolvedOp({{"by", AttrValue::Int(1)}}), "finds_sample") << "too small";
  EXPECT_EQ(ResolvedOp({{"by", AttrValue::Float(2)}}), "finds_sample") << "not an integer";
  EXPECT_EQ(ResolvedOp({{"weight", AttrValue::Float(0)}}), "finds_weighed_sample") << "any value";
  EXPECT_EQ(ResolvedOp({{"by", two}, {"weight", AttrValue::Float(1)}}),
            "ambiguous node: attribute 'by' >= 2 selects 'finds_two_sample', attribute 'weight' selects "
            "'finds_weighed_sample'");
}

TEST(NodeResolution, FailsIfNoConditionHolds) {
  const NodeCandidate alone[] = {{FindOp("finds_weighed_sample"), FindOp("finds_weighed_sample")->nodes.data()}};
  GivenAttributes none({});
  NodeCandidate resolved;
  EXPECT_EQ(ResolveNode(alone, none, &resolved).message(),
            "the node's attributes select no operator: expected attribute 'weight' for 'finds_weighed_sample'");
}

// A runtime that ignores domains merges names of several domains.
TEST(NodeResolution, RequiredAttributesSelectWithoutConditions) {
  const Op &sample = *FindOp("sample"), &variadic = *FindOp("variadic_sample");
  const NodeCandidate mixed[] = {{&sample, sample.nodes.data()}, {&variadic, variadic.nodes.data()}};
  NodeCandidate resolved;
  GivenAttributes none({}), ratio({{"ratio", AttrValue::Float(1)}});
  ASSERT_TRUE(ResolveNode(mixed, none, &resolved).ok());
  EXPECT_EQ(resolved.op, &variadic);
  ASSERT_TRUE(ResolveNode(mixed, ratio, &resolved).ok());
  EXPECT_EQ(resolved.op, &sample);
  ASSERT_TRUE(ResolveNode(std::span(mixed, 1), none, &resolved).ok()) << "the first reports the missing attribute";
  EXPECT_EQ(resolved.op, &sample);
}

TEST(NodeResolution, PluginNamesHaveNoDomain) {
  static constexpr NodeName kFirst[] = {"custom::shared", "custom::first"};
  static constexpr NodeName kSecond[] = {"mmcv::second", "polyop::shared", "mmcv::first"};
  Op first, second;
  first.nodes = kFirst;
  second.nodes = kSecond;
  std::map<std::string, const Op*> found;
  for (const auto& candidates : CandidatesByPluginName(std::vector<const Op*>{&first, &second})) {
    ASSERT_EQ(candidates.size(), 1u);
    found.emplace(candidates[0].node->op_type(), candidates[0].op);
  }
  const std::map<std::string, const Op*> expected = {{"shared", &second}, {"first", &first}, {"second", &second}};
  EXPECT_EQ(found, expected) << "polyop's meaning, else the first";
}

TEST(NodeResolution, ChecksOutputCount) {
  const std::vector<NodeCandidate> candidates = CandidatesFor("custom", "finds_sample");
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(SchemaCandidate(candidates).op, FindOp("finds_two_sample"));
  EXPECT_TRUE(CheckOutputCount(candidates, candidates[0], 1).ok());
  EXPECT_TRUE(CheckOutputCount(candidates, candidates[1], 2).ok());
  EXPECT_EQ(
      CheckOutputCount(candidates, candidates[0], 2).message(),
      "expected 1 output, got 2: the node's attributes select 'finds_sample'; 'finds_two_sample' (attribute 'by' >= "
      "2) has 2; 'finds_weighed_sample' (attribute 'weight') has 1");
  EXPECT_EQ(
      CheckOutputCount(candidates, candidates[1], 1).message(),
      "expected 2 outputs, got 1: the node's attributes select 'finds_two_sample'; 'finds_sample' (otherwise) has 1; "
      "'finds_weighed_sample' (attribute 'weight') has 1");
}

// Checks copies of two operators with other node names.
Status CheckCopies(const char* one, std::span<const NodeName> names, const char* other,
                   std::span<const NodeName> others) {
  Op a = *FindOp(one), b = *FindOp(other);
  a.nodes = names;
  b.nodes = others;
  return CheckNames(std::vector<const Op*>{&a, &b});
}

TEST(Registry, RejectsOperatorsThatCannotShareAName) {
  static constexpr NodeName kPlain[] = {"custom::shared"};
  static constexpr NodeName kWithRows[] = {NodeName("custom::shared").When("rows")};
  static constexpr NodeName kWithWeight[] = {NodeName("custom::shared").When("weight")};
  const auto error = [](const Status& status) { return status.message(); };
  EXPECT_EQ(error(CheckCopies("finds_sample", kPlain, "finds_weighed_sample", kWithWeight)), "");
  EXPECT_EQ(error(CheckCopies("finds_sample", kWithRows, "finds_weighed_sample", kWithWeight)), "");
  EXPECT_EQ(error(CheckCopies("finds_sample", kPlain, "finds_weighed_sample", kPlain)),
            "operators 'finds_sample' and 'finds_weighed_sample' are both registered for node custom::shared");
  EXPECT_EQ(error(CheckCopies("variadic_sample", kPlain, "finds_weighed_sample", kWithWeight)),
            "operators 'variadic_sample' and 'finds_weighed_sample' cannot share node custom::shared: a variadic input "
            "cannot be shared");
  EXPECT_EQ(
      error(CheckCopies("empty_sample", kPlain, "finds_two_sample", kWithWeight)),
      "operators 'empty_sample' and 'finds_two_sample' cannot share node custom::shared: 'empty_sample' has a CPU "
      "kernel for (x: f32) and 'finds_two_sample' has none")
      << "the second output is of another type";
  EXPECT_EQ(error(CheckCopies("adds_sample", kPlain, "finds_two_sample", kWithWeight)),
            "operators 'adds_sample' and 'finds_two_sample' cannot share node custom::shared: expected one to have all "
            "inputs and outputs of the other");
}

// The catalogue is JSON, which is UTF-8.
TEST(Registry, RejectsTextsThatAreNotUtf8) {
  const auto error = [](auto change) {
    Op op = *FindOp("finds_sample");
    change(op);
    return CheckNames(std::vector<const Op*>{&op}).message();
  };
  const auto semantics = [&](const char* text) { return error([&](Op& op) { op.doc.semantics = text; }); };
  for (const char* good : {"", "plain", "\u00e9 \u2014 \U0001F600", "\x7F", "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(semantics(good), "");
  EXPECT_EQ(semantics("caf\xE9 here"),
            "operator 'finds_sample', documentation 'semantics': expected UTF-8, got byte 233 at offset 3: save the "
            "source file as UTF-8");
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE9", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xFF"}) {
    EXPECT_NE(semantics(bad), "") << bad;
  }
  const char* const latin = "\xE9";
  for (auto text : {&Doc::summary, &Doc::source, &Doc::differences, &Doc::not_portable}) {
    EXPECT_NE(error([&](Op& op) { op.doc.*text = latin; }), "");
  }
  EXPECT_NE(error([&](Op& op) { op.attributes[0].spec.doc = latin; }), "");
  EXPECT_NE(error([&](Op& op) { op.attributes[0].spec.aliases[0] = latin; }), "");
}

TEST(Guard, TurnsEveryExceptionIntoAMessage) {
  const auto message = [](auto f) { return Guarded(f, [](const char* what) { return std::string(what); }); };
  EXPECT_EQ(message([] { return std::string("result"); }), "result");
  EXPECT_EQ(message([]() -> std::string { throw std::runtime_error("broken"); }), "broken");
  EXPECT_EQ(message([]() -> std::string { throw 7; }), "an unknown exception");
}

TEST(IntDomain, RoundsDownAndRejectsInvalidOperands) {
  IntDomain d({});
  EXPECT_EQ(d.Apply(ExprKind::kFloorDiv, -7, 2), -4);
  EXPECT_EQ(d.Apply(ExprKind::kCeilDiv, 7, 2), 4);
  EXPECT_EQ(d.Apply(ExprKind::kCeilDiv, -7, 2), -3);
  EXPECT_EQ(d.FloorScale(10, 2.55), 25);
  EXPECT_EQ(d.FloorScale(480, double{0.7f}), 336);  // the exact product is 335.99999…
  EXPECT_EQ(d.FloorScale(480, 0.7), 336);
  EXPECT_EQ(d.FloorScale((int64_t{1} << 24) + 1, 3), 3 * ((int64_t{1} << 24) + 1));
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
