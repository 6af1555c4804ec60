// Every operator as a plugin, without TensorRT and without a GPU: its calls are played through in their order, over the
// CUDA kernels' source on the CPU. Also linked: all operators.
#include "adapters/tensorrt/plugin.h"

#include <NvInferImpl.h>

#include <deque>
#include <random>
#include <stdexcept>
#include <string>

#include "core/cuda_context.h"
#include "core/elements.h"
#include "testing/gpu.h"
#include "testing/random_call.h"

namespace polyop::tensorrt {
namespace {

using testing::HostTensor;
using testing::RandomCall;

// An extent with its value, which the plugin must not see unless it is constant.
class Extent : public nvinfer1::IDimensionExpr, public nvinfer1::apiv::VDimensionExpr {
 public:
  Extent(int64_t v, bool is_constant) : value(v), constant(is_constant) { mImpl = this; }
  bool isConstant() const override { return constant; }
  int64_t getConstantValue() const override { return value; }
  bool isSizeTensor() const override { return size_tensor >= 0; }

  int64_t value;
  bool constant;
  int size_tensor = -1;
};

class Builder : public nvinfer1::IExprBuilder, public nvinfer1::apiv::VExprBuilder {
 public:
  Builder() { mImpl = this; }
  const Extent* Make(int64_t value, bool is_constant) { return &extents_.emplace_back(value, is_constant); }

  const nvinfer1::IDimensionExpr* constant(int64_t value) override { return Make(value, true); }
  const nvinfer1::IDimensionExpr* operation(nvinfer1::DimensionOperation op, const nvinfer1::IDimensionExpr& first,
                                            const nvinfer1::IDimensionExpr& second) override {
    using Op = nvinfer1::DimensionOperation;
    const auto &x = static_cast<const Extent&>(first), &y = static_cast<const Extent&>(second);
    const int64_t a = x.value, b = y.value;
    int64_t value = 0;
    switch (op) {
      case Op::kSUM: value = a + b; break;
      case Op::kSUB: value = a - b; break;
      case Op::kPROD: value = a * b; break;
      case Op::kMAX: value = std::max(a, b); break;
      case Op::kMIN: value = std::min(a, b); break;
      case Op::kFLOOR_DIV: value = a / b - (a % b != 0 && (a < 0) != (b < 0)); break;
      case Op::kCEIL_DIV: value = a / b + (a % b != 0 && (a < 0) == (b < 0)); break;
      default: ADD_FAILURE() << "operation " << static_cast<int>(op); break;
    }
    return Make(value, x.constant && y.constant);
  }
  const nvinfer1::IDimensionExpr* declareSizeTensor(int32_t output, const nvinfer1::IDimensionExpr&,
                                                    const nvinfer1::IDimensionExpr& upper) override {
    Extent& extent = extents_.emplace_back(static_cast<const Extent&>(upper).value, false);
    extent.size_tensor = output;
    return &extent;
  }

 private:
  std::deque<Extent> extents_;
};

bool TypeOf(DType dtype, nvinfer1::DataType* type) {
  switch (dtype) {
    case DType::kF32: *type = nvinfer1::DataType::kFLOAT; return true;
    case DType::kF16: *type = nvinfer1::DataType::kHALF; return true;
    case DType::kBF16: *type = nvinfer1::DataType::kBF16; return true;
    case DType::kI8: *type = nvinfer1::DataType::kINT8; return true;
    case DType::kU8: *type = nvinfer1::DataType::kUINT8; return true;
    case DType::kI32: *type = nvinfer1::DataType::kINT32; return true;
    case DType::kI64: *type = nvinfer1::DataType::kINT64; return true;
    case DType::kBool: *type = nvinfer1::DataType::kBOOL; return true;
    default: return false;
  }
}

nvinfer1::Dims DimsOf(const Shape& shape) {
  nvinfer1::Dims dims{};
  dims.nbDims = shape.rank();
  std::copy(shape.begin(), shape.end(), dims.d);
  return dims;
}

nvinfer1::DynamicPluginTensorDesc DescOf(DType dtype, const Shape& shape) {
  nvinfer1::DynamicPluginTensorDesc desc{};
  EXPECT_TRUE(TypeOf(dtype, &desc.desc.type)) << NameOf(dtype);
  desc.desc.format = nvinfer1::TensorFormat::kLINEAR;
  desc.desc.dims = desc.min = desc.max = desc.opt = DimsOf(shape);
  return desc;
}

// Where operators share a type of nodes the attributes tell which is meant: by a condition of the name, or else by what
// an operator requires. A random call need not give the latter, so of operators without a condition the first is found
// by the type, the others by the name of their own.
Creator* FindCreator(const NodeName& node) {
  const Op *first = nullptr, *mine = nullptr;
  for (const Op* op : AllOps()) {
    for (const NodeName& name : op->nodes) {
      if (name.op_type() != node.op_type() || name.when.attribute != nullptr) continue;
      if (first == nullptr) first = op;
      if (std::string_view(name.name) == node.name) mine = op;
    }
  }
  const bool by_type = node.when.attribute != nullptr || mine == nullptr || mine == first;
  const std::string type = by_type ? std::string(node.op_type()) : "polyop_" + std::string(mine->name);
  for (const auto& creator : Creators()) {
    if (creator->getPluginName() == type) return creator.get();
  }
  return nullptr;
}

// What the ONNX parser would hand over for these attributes: integers as 32 bits, and nothing for an empty list.
void AddAsParser(const RandomCall& call, const NodeName& node, std::deque<std::vector<int32_t>>* integers,
                 std::deque<std::vector<float>>* reals, std::vector<nvinfer1::PluginField>* fields) {
  for (const AttrInfo& info : call.op->attributes) {
    const AttrValue value = info.get(info.spec, call.params.get());
    const auto& ints = integers->emplace_back(value.ints.begin(), value.ints.end());
    const auto& floats = reals->emplace_back(value.floats.begin(), value.floats.end());
    if (!ints.empty()) {
      fields->push_back({node.NameOf(info.spec.name), ints.data(), nvinfer1::PluginFieldType::kINT32,
                         static_cast<int32_t>(ints.size())});
    } else if (!floats.empty()) {
      fields->push_back({node.NameOf(info.spec.name), floats.data(), nvinfer1::PluginFieldType::kFLOAT32,
                         static_cast<int32_t>(floats.size())});
    } else if (value.type == AttrType::kString) {
      const char* const text = info.spec.choices[0];
      for (const char* choice : info.spec.choices) {
        if (choice == nullptr || value.text != choice) continue;
        fields->push_back({node.NameOf(info.spec.name), choice, nvinfer1::PluginFieldType::kCHAR,
                           static_cast<int32_t>(value.text.size() + 1)});
      }
      EXPECT_NE(text, nullptr);
    }
  }
}

// Plays one call. Returns false where TensorRT could not have made it: a type or an input that it has not.
class Play {
 public:
  explicit Play(const RandomCall& call) : call_(call), op_(*call.op), signature_(*op_.signatures[0].signature) {}

  bool Possible() const {
    nvinfer1::DataType type;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const HostTensor& t = call_.inputs[i];
      if (!t.present() || !TypeOf(t.dtype(), &type)) return false;
      if (SpecOf(signature_, i).optional && t.shape() == Shape{0}) return false;  // stands for one that is left out
      if (NeedsValue(i) && IsReal(t.dtype())) return false;                       // TensorRT has no real shape inputs
      for (int64_t extent : t.shape().span()) {
        if (extent > INT32_MAX) return false;
      }
    }
    for (const AttrInfo& info : op_.attributes) {
      for (const int64_t v : info.get(info.spec, call_.params.get()).ints) {
        if (v != static_cast<int32_t>(v)) return false;
      }
    }
    return true;
  }

  void Run(const std::vector<HostTensor>& want, const NodeName& node) {
    nvinfer1::IPluginV3* const built = Create(node);
    ASSERT_NE(built, nullptr) << call_.Text();
    const std::vector<Shape> shapes = Build(*built, want);
    if (::testing::Test::HasFailure()) return;
    const std::unique_ptr<nvinfer1::IPluginV3> loaded(Restore(*built, node));
    delete built;
    ASSERT_NE(loaded, nullptr) << call_.Text();
    Execute(*loaded, shapes, want);
  }

 private:
  bool NeedsValue(size_t i) const {
    return op_.signatures.size() == 1 && i < static_cast<size_t>(signature_.num_inputs()) &&
           op_.signatures[0].needs_value(static_cast<int>(i));
  }

  nvinfer1::IPluginV3* Create(const NodeName& node) {
    std::deque<std::vector<int32_t>> integers;
    std::deque<std::vector<float>> reals;
    std::vector<nvinfer1::PluginField> fields;
    AddAsParser(call_, node, &integers, &reals, &fields);
    const int32_t one = 1;
    fields.push_back({kSizeTensorsField, &one, nvinfer1::PluginFieldType::kINT32, 1});
    const nvinfer1::PluginFieldCollection collection{static_cast<int32_t>(fields.size()), fields.data()};
    return FindCreator(node)->createPlugin("layer", &collection, nvinfer1::TensorRTPhase::kBUILD);
  }

  template <class Interface>
  static Interface& As(nvinfer1::IPluginV3& plugin, nvinfer1::PluginCapabilityType type) {
    return static_cast<Interface&>(*plugin.getCapabilityInterface(type));
  }

  // What a build asks; the outputs' shapes, pending extents at their bounds.
  std::vector<Shape> Build(nvinfer1::IPluginV3& plugin, const std::vector<HostTensor>& want) {
    using Side = nvinfer1::v_1_0::IPluginV3OneBuild;
    Side& build = As<Side>(plugin, nvinfer1::PluginCapabilityType::kBUILD);
    Builder builder;
    std::vector<nvinfer1::DimsExprs> inputs, shape_inputs;
    std::vector<nvinfer1::DataType> types;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const HostTensor& t = call_.inputs[i];
      nvinfer1::DimsExprs exprs{};
      if (NeedsValue(i)) {  // the values of a shape input come as if they were extents
        exprs.nbDims = t.shape().rank() == 0 ? 0 : static_cast<int32_t>(t.size());
        for (int64_t k = 0; k < t.size(); ++k) exprs.d[k] = builder.Make(static_cast<int64_t>(t.at(k)), false);
        shape_inputs.push_back(exprs);
        continue;
      }
      exprs.nbDims = t.shape().rank();
      for (int d = 0; d < exprs.nbDims; ++d) exprs.d[d] = builder.Make(t.shape()[d], (d + i) % 2 == 0);
      inputs.push_back(exprs);
      descs_.push_back(DescOf(t.dtype(), t.shape()));
      types.push_back(descs_.back().desc.type);
      data_.push_back(&t);
    }
    const int32_t count = build.getNbOutputs(), num_inputs = static_cast<int32_t>(inputs.size());
    std::vector<nvinfer1::DataType> output_types(static_cast<size_t>(count));
    EXPECT_EQ(build.getOutputDataTypes(output_types.data(), count, types.data(), num_inputs), 0) << call_.Text();
    std::vector<nvinfer1::DimsExprs> outputs(static_cast<size_t>(count));
    EXPECT_EQ(build.getOutputShapes(inputs.data(), num_inputs, shape_inputs.data(),
                                    static_cast<int32_t>(shape_inputs.size()), outputs.data(), count, builder),
              0)
        << call_.Text();
    std::vector<Shape> shapes;
    if (::testing::Test::HasFailure()) return shapes;
    for (size_t o = 0; o < outputs.size(); ++o) {
      Shape shape;
      for (int d = 0; d < outputs[o].nbDims; ++d) {
        const auto& extent = static_cast<const Extent&>(*outputs[o].d[d]);
        const bool of_output = o < want.size() && want[o].present();
        if (extent.isSizeTensor()) {
          EXPECT_GE(extent.size_tensor, static_cast<int>(want.size()));
          EXPECT_TRUE(!of_output || want[o].shape()[d] <= extent.value) << call_.Text();
        } else if (of_output) {
          EXPECT_EQ(want[o].shape()[d], extent.value) << call_.Text() << ": output " << o << ", dimension " << d;
        }
        shape.push_back(extent.value);
      }
      shapes.push_back(shape);
      nvinfer1::DynamicPluginTensorDesc desc = DescOf(DType::kF32, shape);
      desc.desc.type = output_types[o];
      descs_.push_back(desc);
    }
    for (int32_t position = 0; position < static_cast<int32_t>(descs_.size()); ++position) {
      EXPECT_TRUE(build.supportsFormatCombination(position, descs_.data(), num_inputs, count))
          << call_.Text() << ": tensor " << position;
    }
    EXPECT_EQ(build.configurePlugin(descs_.data(), num_inputs, descs_.data() + num_inputs, count), 0);
    workspace_bytes_ = build.getWorkspaceSize(descs_.data(), num_inputs, descs_.data() + num_inputs, count);
    return shapes;
  }

  // Through an engine file and into a context.
  nvinfer1::IPluginV3* Restore(nvinfer1::IPluginV3& plugin, const NodeName& node) {
    using Side = nvinfer1::v_1_0::IPluginV3OneRuntime;
    const auto* fields = As<Side>(plugin, nvinfer1::PluginCapabilityType::kRUNTIME).getFieldsToSerialize();
    const std::unique_ptr<nvinfer1::IPluginV3> read(
        FindCreator(node)->createPlugin("layer", fields, nvinfer1::TensorRTPhase::kRUNTIME));
    if (read == nullptr) return nullptr;
    const std::unique_ptr<nvinfer1::IPluginV3> clone(read->clone());
    return As<Side>(*clone, nvinfer1::PluginCapabilityType::kRUNTIME).attachToContext(nullptr);
  }

  void Execute(nvinfer1::IPluginV3& plugin, const std::vector<Shape>& shapes, const std::vector<HostTensor>& want) {
    using Side = nvinfer1::v_1_0::IPluginV3OneRuntime;
    Side& runtime = As<Side>(plugin, nvinfer1::PluginCapabilityType::kRUNTIME);
    std::vector<nvinfer1::PluginTensorDesc> inputs, outputs;
    for (size_t i = 0; i < descs_.size(); ++i) (i < data_.size() ? inputs : outputs).push_back(descs_[i].desc);
    EXPECT_EQ(runtime.onShapeChange(inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                                    static_cast<int32_t>(outputs.size())),
              0)
        << call_.Text();
    testing::TestGpu gpu(SIZE_MAX);
    std::vector<void*> sources(data_.size());
    for (size_t i = 0; i < data_.size(); ++i) ASSERT_TRUE(gpu.Upload(data_[i]->view(), &sources[i]).ok());
    std::vector<HostTensor> got;
    std::vector<void*> targets(outputs.size());
    for (size_t o = 0; o < outputs.size(); ++o) {
      const DType dtype = o < want.size() && want[o].present() ? want[o].dtype() : DType::kI64;
      got.emplace_back(dtype, shapes[o]);
      ASSERT_TRUE(gpu.AllocateFor(got.back().view(), &targets[o]).ok());
    }
    void* const workspace = gpu.Allocate(workspace_bytes_);
    ASSERT_EQ(runtime.enqueue(inputs.data(), outputs.data(), sources.data(), targets.data(), workspace, nullptr), 0)
        << call_.Text();
    for (size_t o = 0; o < outputs.size(); ++o) ASSERT_TRUE(gpu.Download(got[o].view(), targets[o]).ok());
    const int count = static_cast<int>(want.size());
    int size_tensor = count;
    for (int o = 0; o < count; ++o) {
      HostTensor& tensor = got[static_cast<size_t>(o)];
      const HostTensor& wanted = want[static_cast<size_t>(o)];
      Shape found = tensor.shape();
      if (FindExtents(o, wanted.shape().rank(), got[std::min(got.size() - 1, static_cast<size_t>(size_tensor))],
                      &found)) {
        ++size_tensor;
        tensor.Keep(found);
      }
      EXPECT_TRUE(tensor.SameBytes(wanted)) << call_.Text() << ": output " << o;
    }
  }

  // Puts what a size tensor holds in the place of the extents of output `o` that the kernel finds; false if there are
  // none.
  bool FindExtents(int o, int rank, const HostTensor& size, Shape* shape) const {
    for (const OpSignature& s : op_.signatures) {
      const TensorSpec& spec = s.signature->output(o);
      if (!spec.pending() || spec.rank != rank) continue;
      for (int d = 0; d < rank; ++d) {
        if (spec.dims[static_cast<size_t>(d)].kind == DimSpec::Kind::kPending) {
          (*shape)[d] = static_cast<int64_t>(size.at(0));
        }
      }
      return true;
    }
    return false;
  }

  const RandomCall& call_;
  const Op& op_;
  const Signature& signature_;
  std::vector<nvinfer1::DynamicPluginTensorDesc> descs_;
  std::vector<const HostTensor*> data_;
  size_t workspace_bytes_ = 0;
};

class TensorRTPlugin : public ::testing::TestWithParam<const Op*> {};

// Nodes of other names make the same plugin, or one whose name implies an attribute's value.
TEST_P(TensorRTPlugin, DoesWhatADirectCallDoes) {
  const Op& op = *GetParam();
  if (!testing::HasGpuKernels(op)) return;
  int played = 0;
  const Signature& signature = *op.signatures[0].signature;
  for (uint32_t seed = 0; seed < 3000 && played < testing::Rounds(40); ++seed) {
    std::mt19937 rng(seed);
    RandomCall call = testing::MakeRandomCall(op, [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); });
    // Outputs that an attribute asks for.
    for (int o = 0; o < signature.num_outputs(); ++o) {
      if (!signature.output(o).optional) continue;
      const AttrInfo& wanted = *op.FindAttribute("return_" + std::string(signature.output(o).name));
      call.optional_outputs = wanted.get(wanted.spec, call.params.get()).ints[0] != 0;
    }
    Play play(call);
    if (!play.Possible()) continue;
    std::vector<HostTensor> cpu, want;
    testing::RunOptions options;
    options.device = GpuDevice();
    options.most_elements = 1 << 16;
    options.wanted_outputs = call.optional_outputs ? 99 : 2;
    if (!RunOnce(call, &cpu).ok()) continue;
    if (!testing::RunOp(op, call.params.get(), call.inputs, &want, options).ok()) continue;
    // A name that implies a value is played with that value alone.
    const NodeName& node = op.nodes[0];
    if (node.presets[0].first != nullptr) {
      const AttrInfo& info = *op.FindAttribute(node.presets[0].first);
      const AttrValue value = info.get(info.spec, call.params.get());
      if (info.spec.choices[0] != nullptr && ToString(value) != node.presets[0].second &&
          !(info.spec.int_coded && info.spec.choices[value.ints[0]] == std::string_view(node.presets[0].second))) {
        continue;
      }
    }
    play.Run(want, node);
    if (HasFailure()) return;
    ++played;
  }
  RecordProperty("played", played);
  bool real_shapes = false;  // scales: TensorRT cannot have them, and says so
  for (int i = 0; i < op.signatures[0].signature->num_inputs(); ++i) {
    real_shapes =
        real_shapes || (op.signatures[0].needs_value(i) && IsReal(op.kernels[0].inputs[static_cast<size_t>(i)]));
  }
  EXPECT_TRUE(real_shapes || played >= 10) << "only " << played << " calls were possible";
}

TEST_P(TensorRTPlugin, EveryNodeNameHasACreator) {
  for (const NodeName& node : GetParam()->nodes) {
    Creator* const creator = FindCreator(node);
    ASSERT_NE(creator, nullptr) << node.name;
    EXPECT_STREQ(creator->getPluginVersion(), "1");
    EXPECT_STREQ(creator->getPluginNamespace(), "");
    std::vector<std::string> names;
    for (int32_t i = 0; i < creator->getFieldNames()->nbFields; ++i) {
      names.emplace_back(creator->getFieldNames()->fields[i].name);
    }
    for (const AttrInfo& info : GetParam()->attributes) {
      EXPECT_NE(std::find(names.begin(), names.end(), node.NameOf(info.spec.name)), names.end()) << info.spec.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, TensorRTPlugin, ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& test) { return std::string(test.param->name); });

// A build may have fewer operators than these tests need.
Creator& CreatorOf(const char* node) {
  Creator* const creator = FindCreator(NodeName(node));
  if (creator == nullptr) throw std::runtime_error(std::string("no operator of this build answers to ") + node);
  return *creator;
}

std::unique_ptr<nvinfer1::IPluginV3> RoiAlignOf(const std::vector<nvinfer1::PluginField>& fields) {
  const nvinfer1::PluginFieldCollection collection{static_cast<int32_t>(fields.size()), fields.data()};
  return std::unique_ptr<nvinfer1::IPluginV3>(
      CreatorOf("mmcv::MMCVRoiAlign").createPlugin("layer", &collection, nvinfer1::TensorRTPhase::kBUILD));
}

int32_t OutputsOf(const char* node, const std::vector<nvinfer1::PluginField>& fields) {
  const nvinfer1::PluginFieldCollection collection{static_cast<int32_t>(fields.size()), fields.data()};
  const std::unique_ptr<nvinfer1::IPluginV3> plugin(
      CreatorOf(node).createPlugin("layer", &collection, nvinfer1::TensorRTPhase::kBUILD));
  if (plugin == nullptr) return -1;
  return static_cast<nvinfer1::v_1_0::IPluginV3OneBuild&>(
             *plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kBUILD))
      .getNbOutputs();
}

TEST(TensorRTPluginNames, AttributesTellWhichOperatorIsMeant) {
  using Type = nvinfer1::PluginFieldType;
  const int32_t five = 5;
  const float half = 0.5f;
  const nvinfer1::PluginField radius{"radius", &half, Type::kFLOAT32, 1}, nsample{"nsample", &five, Type::kINT32, 1},
      max_radius{"max_radius", &half, Type::kFLOAT32, 1}, sample_num{"sample_num", &five, Type::kINT32, 1};
  EXPECT_EQ(OutputsOf("polyop::BallQuery", {radius, nsample}), 2);
  EXPECT_EQ(OutputsOf("polyop::BallQuery", {max_radius, sample_num}), 1);
  const auto error = [&](const std::vector<nvinfer1::PluginField>& fields, const std::string& part) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(OutputsOf("polyop::BallQuery", fields), -1);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  error({radius, nsample, max_radius, sample_num},
        "attribute 'nsample' says that the node means 'grid_ball_query', and 'max_radius' that it means 'ball_query'");
  error({}, "attribute 'max_radius' is missing");
  error({nsample}, "attribute 'radius' is missing");
}

// Everything wrong ends in a code and a line on stderr that says why.
TEST(TensorRTPluginErrors, WrongAttributesMakeNoPlugin) {
  const int32_t zero = 0, seven = 7;
  const char text[] = "median";
  using Type = nvinfer1::PluginFieldType;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RoiAlignOf({{"output_height", &zero, Type::kINT32, 1}}), nullptr);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("'output_height' is 0"), std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RoiAlignOf({{"output_height", &seven, Type::kINT32, 1}, {"mode", text, Type::kCHAR, 7}}), nullptr);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("median"), std::string::npos);
  EXPECT_NE(RoiAlignOf({{"output_height", &seven, Type::kINT32, 1}, {"not_known", nullptr, Type::kINT32, 0}}), nullptr);
}

TEST(TensorRTPluginErrors, WrongShapesAndTypesGiveACode) {
  const int32_t seven = 7;
  const auto plugin = RoiAlignOf({{"output_height", &seven, nvinfer1::PluginFieldType::kINT32, 1}});
  ASSERT_NE(plugin, nullptr);
  auto& runtime = static_cast<nvinfer1::v_1_0::IPluginV3OneRuntime&>(
      *plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kRUNTIME));
  auto& build = static_cast<nvinfer1::v_1_0::IPluginV3OneBuild&>(
      *plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kBUILD));
  nvinfer1::PluginTensorDesc inputs[2] = {DescOf(DType::kF32, {1, 3, 8, 8}).desc, DescOf(DType::kF32, {2, 4}).desc};
  const nvinfer1::PluginTensorDesc output = DescOf(DType::kF32, {2, 3, 7, 1}).desc;
  ::testing::internal::CaptureStderr();
  EXPECT_NE(runtime.onShapeChange(inputs, 2, &output, 1), 0);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("'rois' has shape [2, 4]"), std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_NE(runtime.enqueue(inputs, &output, nullptr, nullptr, nullptr, nullptr), 0);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("onShapeChange"), std::string::npos);
  inputs[1] = DescOf(DType::kI32, {2, 5}).desc;
  ::testing::internal::CaptureStderr();
  EXPECT_NE(runtime.onShapeChange(inputs, 2, &output, 1), 0);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("no kernel takes"), std::string::npos);
  const nvinfer1::DataType types[2] = {nvinfer1::DataType::kFLOAT, nvinfer1::DataType::kINT32};
  nvinfer1::DataType output_type;
  ::testing::internal::CaptureStderr();
  EXPECT_NE(build.getOutputDataTypes(&output_type, 1, types, 2), 0);
  EXPECT_NE(::testing::internal::GetCapturedStderr(), "");
  const nvinfer1::DynamicPluginTensorDesc descs[3] = {DescOf(DType::kF32, {1, 3, 8, 8}), DescOf(DType::kF16, {2, 5}),
                                                      DescOf(DType::kF32, {2, 3, 7, 1})};
  EXPECT_TRUE(build.supportsFormatCombination(0, descs, 2, 1));
  EXPECT_FALSE(build.supportsFormatCombination(1, descs, 2, 1)) << "rois must be of the input's type";
}

TEST(TensorRTPluginErrors, RealShapeInputsAreExplained) {
  const nvinfer1::PluginFieldCollection none{0, nullptr};
  const std::unique_ptr<nvinfer1::IPluginV3> plugin(
      CreatorOf("custom::DynamicTRTResize").createPlugin("l", &none, nvinfer1::TensorRTPhase::kBUILD));
  ASSERT_NE(plugin, nullptr);
  auto& build = static_cast<nvinfer1::v_1_0::IPluginV3OneBuild&>(
      *plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kBUILD));
  Builder builder;
  nvinfer1::DimsExprs inputs[2] = {}, output{};
  inputs[0].nbDims = 4;
  for (auto& d : inputs[0].d) d = builder.Make(8, false);
  inputs[1].nbDims = 1;
  inputs[1].d[0] = builder.Make(4, true);
  ::testing::internal::CaptureStderr();
  EXPECT_NE(build.getOutputShapes(inputs, 2, nullptr, 0, &output, 1, builder), 0);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("shape input"), std::string::npos);
}

}  // namespace
}  // namespace polyop::tensorrt
