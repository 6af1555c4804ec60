// SPDX-License-Identifier: Apache-2.0
// Tests every operator as a plugin without TensorRT and without a GPU: makes TensorRT's calls in their order, with CUDA
// kernels emulated on the CPU. Links all operators.
#include "adapters/tensorrt/plugin.h"

#include <NvInferImpl.h>

#include <algorithm>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>

#include "adapters/tensorrt/exprs_domain.h"
#include "core/cuda_context.h"
#include "core/elements.h"
#include "testing/gpu.h"
#include "testing/random_call.h"

namespace polyop::tensorrt {
namespace {

using testing::HostTensor;
using testing::RandomCall;

// An extent with its value, which is hidden from the plugin unless it is constant.
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
      case Op::kFLOOR_DIV: value = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); break;
      case Op::kCEIL_DIV: value = b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0)); break;
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

DType FromType(nvinfer1::DataType type) {
  for (int i = 0; i < kNumDTypes; ++i) {
    nvinfer1::DataType same;
    if (TypeOf(static_cast<DType>(i), &same) && same == type) return static_cast<DType>(i);
  }
  ADD_FAILURE() << "type " << static_cast<int>(type);
  return DType::kI64;
}

Shape ShapeOf(const nvinfer1::Dims& dims) {
  return Shape(std::span<const int64_t>(dims.d, static_cast<size_t>(dims.nbDims)));
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

// If operators share a node type, the attributes select one: by a condition, or by required attributes. A random call
// may lack the latter, so of operators without a condition the first is found by the type, the others by their own
// names.
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

// Returns these attributes as the ONNX parser passes them: integers have 32 bits, and empty lists are omitted.
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

// Makes one call as TensorRT does: it knows only what the plugin declares, and allocates outputs of the declared types
// and shapes.
class Play {
 public:
  explicit Play(const RandomCall& call) : call_(call), op_(*call.op), signature_(SignatureOf(call)) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.inputs[i].present()) num_inputs_ = i + 1;  // the model omits trailing inputs
    }
  }

  // Returns false if TensorRT cannot make the call, because it lacks a type.
  bool Possible() const {
    nvinfer1::DataType type;
    for (size_t i = 0; i < num_inputs_; ++i) {
      const HostTensor& t = call_.inputs[i];
      if (!t.present() && NeedsValue(i)) return false;
      if (!t.present()) continue;
      if (!TypeOf(t.dtype(), &type)) return false;
      if (NeedsValue(i) && IsReal(t.dtype())) return false;  // TensorRT has no real shape inputs
      double elements = 1;  // of a tensor of this shape with one more in each extent, which the build must admit
      for (int64_t extent : t.shape().span()) {
        if (extent > INT32_MAX) return false;
        elements *= static_cast<double>(extent + 1);
      }
      if (elements > 1e12) return false;
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
    Build(*built, want);
    if (::testing::Test::HasFailure()) return;
    const std::unique_ptr<nvinfer1::IPluginV3> loaded(Restore(*built, node));
    delete built;
    ASSERT_NE(loaded, nullptr) << call_.Text();
    Execute(*loaded, want);
  }

 private:
  // Returns the signature that the ranks of the call's inputs select.
  static const Signature& SignatureOf(const RandomCall& call) {
    std::vector<AnyTensor> views;
    for (const HostTensor& t : call.inputs) views.push_back(t.view());
    const Kernel* kernel = nullptr;
    const bool found = call.op->FindKernel(GpuDevice(), views, &kernel).ok();
    return *call.op->signatures[static_cast<size_t>(found ? kernel->signature : 0)].signature;
  }

  bool HasFoundExtents() const {
    bool pending = false;
    for (int o = 0; o < signature_.num_outputs(); ++o) pending = pending || signature_.output(o).pending();
    return pending;
  }

  bool NeedsValue(size_t i) const {
    return op_.signatures.size() == 1 && i < static_cast<size_t>(signature_.num_inputs()) &&
           op_.signatures[0].needs_value(static_cast<int>(i));
  }

  nvinfer1::IPluginV3* Create(const NodeName& node) {
    std::deque<std::vector<int32_t>> integers;
    std::deque<std::vector<float>> reals;
    std::vector<nvinfer1::PluginField> fields;
    AddAsParser(call_, node, &integers, &reals, &fields);
    const int32_t size_tensors = HasFoundExtents() ? 1 : 0;
    int32_t missing = 0;
    for (size_t i = 0; i < num_inputs_; ++i) missing |= call_.inputs[i].present() ? 0 : 1 << i;
    fields.push_back({kSizeTensorsField, &size_tensors, nvinfer1::PluginFieldType::kINT32, 1});
    if (missing != 0) fields.push_back({kMissingInputsField, &missing, nvinfer1::PluginFieldType::kINT32, 1});
    const nvinfer1::PluginFieldCollection collection{static_cast<int32_t>(fields.size()), fields.data()};
    return FindCreator(node)->createPlugin("layer", &collection, nvinfer1::TensorRTPhase::kBUILD);
  }

  template <class Interface>
  static Interface& As(nvinfer1::IPluginV3& plugin, nvinfer1::PluginCapabilityType type) {
    return static_cast<Interface&>(*plugin.getCapabilityInterface(type));
  }

  // Adds an input with the type and shape of the tensor. An absent tensor is an empty constant, as preprocess_onnx
  // writes it.
  void AddInput(size_t i) {
    const HostTensor& t =
        call_.inputs[i].present() ? call_.inputs[i] : constants_.emplace_back(HostTensor(DType::kF32, Shape{0}));
    descs_.push_back(DescOf(t.dtype(), t.shape()));
    data_.push_back(&t);
    // Every other extent is dynamic. Its maximum is larger than in this call, and differs between inputs.
    for (int d = 0; d < t.shape().rank(); ++d) {
      if (call_.inputs[i].present() && IsDynamic(i, d)) descs_.back().max.d[d] += static_cast<int64_t>(1 + i % 3);
    }
  }

  static bool IsDynamic(size_t i, int d) { return (static_cast<size_t>(d) + i) % 2 != 0; }

  // Returns the outputs' extents for inputs at their optimum or their maximum.
  std::vector<nvinfer1::DimsExprs> OutputShapes(nvinfer1::v_1_0::IPluginV3OneBuild& build, Builder& builder,
                                                nvinfer1::Dims nvinfer1::DynamicPluginTensorDesc::* dims) const {
    std::vector<nvinfer1::DimsExprs> inputs, shape_inputs;
    size_t at = 0;
    for (size_t i = 0; i < num_inputs_; ++i) {
      const HostTensor& t = call_.inputs[i];
      nvinfer1::DimsExprs exprs{};
      if (NeedsValue(i)) {  // values of a shape input are passed as extents
        exprs.nbDims = t.shape().rank() == 0 ? 0 : static_cast<int32_t>(t.size());
        for (int64_t k = 0; k < t.size(); ++k) exprs.d[k] = builder.Make(static_cast<int64_t>(t.at(k)), false);
        shape_inputs.push_back(exprs);
        continue;
      }
      const nvinfer1::Dims& extents = descs_[at++].*dims;
      exprs.nbDims = extents.nbDims;
      for (int d = 0; d < exprs.nbDims; ++d) exprs.d[d] = builder.Make(extents.d[d], !t.present() || !IsDynamic(i, d));
      inputs.push_back(exprs);
    }
    std::vector<nvinfer1::DimsExprs> outputs(static_cast<size_t>(build.getNbOutputs()));
    EXPECT_EQ(build.getOutputShapes(inputs.data(), static_cast<int32_t>(inputs.size()), shape_inputs.data(),
                                    static_cast<int32_t>(shape_inputs.size()), outputs.data(),
                                    static_cast<int32_t>(outputs.size()), builder),
              0)
        << call_.Text();
    return outputs;
  }

  static Shape ValuesOf(const nvinfer1::DimsExprs& exprs) {
    Shape shape;
    for (int d = 0; d < exprs.nbDims; ++d) shape.push_back(static_cast<const Extent&>(*exprs.d[d]).value);
    return shape;
  }

  // Makes the calls of a build. Pending extents of the declared outputs are at their bounds.
  void Build(nvinfer1::IPluginV3& plugin, const std::vector<HostTensor>& want) {
    using Side = nvinfer1::v_1_0::IPluginV3OneBuild;
    Side& build = As<Side>(plugin, nvinfer1::PluginCapabilityType::kBUILD);
    for (size_t i = 0; i < num_inputs_; ++i) {
      if (!NeedsValue(i)) AddInput(i);
    }
    std::vector<nvinfer1::DataType> types;
    for (const auto& desc : descs_) types.push_back(desc.desc.type);
    const int32_t count = build.getNbOutputs(), num_inputs = static_cast<int32_t>(descs_.size());
    std::vector<nvinfer1::DataType> output_types(static_cast<size_t>(count));
    EXPECT_EQ(build.getOutputDataTypes(output_types.data(), count, types.data(), num_inputs), 0) << call_.Text();
    Builder builder;
    const auto outputs = OutputShapes(build, builder, &nvinfer1::DynamicPluginTensorDesc::opt);
    const auto max_outputs = OutputShapes(build, builder, &nvinfer1::DynamicPluginTensorDesc::max);
    if (::testing::Test::HasFailure()) return;
    for (size_t o = 0; o < outputs.size(); ++o) {
      const bool of_output = o < want.size() && want[o].present();
      if (of_output) {
        ASSERT_EQ(outputs[o].nbDims, want[o].shape().rank()) << call_.Text() << ": output " << o;
      }
      for (int d = 0; d < outputs[o].nbDims; ++d) {
        const auto& extent = static_cast<const Extent&>(*outputs[o].d[d]);
        if (extent.isSizeTensor()) {
          EXPECT_GE(extent.size_tensor, static_cast<int>(want.size()));
          EXPECT_TRUE(!of_output || want[o].shape()[d] <= extent.value) << call_.Text();
        } else if (of_output) {
          EXPECT_EQ(want[o].shape()[d], extent.value) << call_.Text() << ": output " << o << ", dimension " << d;
        }
      }
      nvinfer1::DynamicPluginTensorDesc desc = DescOf(DType::kF32, ValuesOf(outputs[o]));
      desc.desc.type = output_types[o];
      desc.max = DimsOf(ValuesOf(max_outputs[o]));
      descs_.push_back(desc);
    }
    for (int32_t position = 0; position < static_cast<int32_t>(descs_.size()); ++position) {
      EXPECT_TRUE(build.supportsFormatCombination(position, descs_.data(), num_inputs, count))
          << call_.Text() << ": tensor " << position;
    }
    EXPECT_EQ(build.configurePlugin(descs_.data(), num_inputs, descs_.data() + num_inputs, count), 0);
    workspace_bytes_ = build.getWorkspaceSize(descs_.data(), num_inputs, descs_.data() + num_inputs, count);
    EXPECT_LT(workspace_bytes_, size_t{1} << 40) << call_.Text();
  }

  // Serialises the plugin, loads it and attaches it to a context.
  nvinfer1::IPluginV3* Restore(nvinfer1::IPluginV3& plugin, const NodeName& node) {
    using Side = nvinfer1::v_1_0::IPluginV3OneRuntime;
    const auto* fields = As<Side>(plugin, nvinfer1::PluginCapabilityType::kRUNTIME).getFieldsToSerialize();
    const std::unique_ptr<nvinfer1::IPluginV3> read(
        FindCreator(node)->createPlugin("layer", fields, nvinfer1::TensorRTPhase::kRUNTIME));
    if (read == nullptr) return nullptr;
    const std::unique_ptr<nvinfer1::IPluginV3> clone(read->clone());
    return As<Side>(*clone, nvinfer1::PluginCapabilityType::kRUNTIME).attachToContext(nullptr);
  }

  void Execute(nvinfer1::IPluginV3& plugin, const std::vector<HostTensor>& want) {
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
      got.emplace_back(FromType(outputs[o].type), ShapeOf(outputs[o].dims));
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
      const HostTensor& expected = want[static_cast<size_t>(o)];
      Shape found = tensor.shape();
      if (signature_.output(o).pending()) {
        ASSERT_LT(static_cast<size_t>(size_tensor), got.size()) << call_.Text();
        FindExtents(signature_.output(o), got[static_cast<size_t>(size_tensor++)], &found);
        tensor.Keep(found);
      }
      EXPECT_TRUE(tensor.SameBytes(expected)) << call_.Text() << ": output " << o;
    }
  }

  // Replaces the found extents of an output by the value of its size tensor.
  static void FindExtents(const TensorSpec& spec, const HostTensor& size, Shape* shape) {
    for (int d = 0; d < spec.rank; ++d) {
      if (spec.dims[static_cast<size_t>(d)].kind == DimSpec::Kind::kPending) {
        (*shape)[d] = static_cast<int64_t>(size.at(0));
      }
    }
  }

  const RandomCall& call_;
  const Op& op_;
  const Signature& signature_;
  std::vector<nvinfer1::DynamicPluginTensorDesc> descs_;
  std::vector<const HostTensor*> data_;
  std::deque<HostTensor> constants_;
  size_t num_inputs_ = 0;
  size_t workspace_bytes_ = 0;
};

class TensorRTPlugin : public ::testing::TestWithParam<const Op*> {};

// Nodes of other names create the same plugin, or one whose name implies an attribute's value.
TEST_P(TensorRTPlugin, EqualsADirectCall) {
  const Op& op = *GetParam();
  if (!testing::HasGpuKernels(op)) return;
  int played = 0;
  const Signature& signature = *op.signatures[0].signature;
  for (uint32_t seed = 0; seed < 3000 && played < testing::Rounds(40); ++seed) {
    std::mt19937 rng(seed);
    RandomCall call = testing::MakeRandomCall(op, [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); });
    // Outputs that an attribute requests.
    for (int o = 0; o < signature.num_outputs(); ++o) {
      if (!signature.output(o).optional) continue;
      const AttrInfo& requested = *op.FindAttribute("return_" + std::string(signature.output(o).name));
      call.optional_outputs = requested.get(requested.spec, call.params.get()).ints[0] != 0;
    }
    Play play(call);
    if (!play.Possible()) continue;
    std::vector<HostTensor> cpu, want;
    testing::RunOptions options;
    options.device = GpuDevice();
    options.max_elements = 1 << 16;
    options.requested_outputs = call.optional_outputs ? 99 : 2;
    if (!RunOnce(call, &cpu).ok()) continue;
    if (!testing::RunOp(op, call.params.get(), call.inputs, &want, options).ok()) continue;
    // A name that implies a value is tested with that value only.
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
  bool real_shapes = false;  // scales, which TensorRT does not support
  for (int i = 0; i < op.signatures[0].signature->num_inputs(); ++i) {
    real_shapes =
        real_shapes || (op.signatures[0].needs_value(i) && IsReal(op.kernels[0].inputs[static_cast<size_t>(i)]));
  }
  EXPECT_TRUE(real_shapes || played >= 10) << "only " << played << " calls were possible";
}

TEST_P(TensorRTPlugin, EveryNodeNameHasACreator) {
  const bool has_kernels =
      std::ranges::any_of(GetParam()->kernels, [](const Kernel& kernel) { return kernel.device == GpuDevice(); });
  for (const NodeName& node : GetParam()->nodes) {
    Creator* const creator = FindCreator(node);
    if (!has_kernels) {
      EXPECT_EQ(creator, nullptr) << node.name;
      continue;
    }
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

// Throws if the build lacks the operator.
Creator& CreatorOf(const char* node) {
  Creator* const creator = FindCreator(NodeName(node));
  if (creator == nullptr) throw std::runtime_error(std::string("no operator of this build has node name ") + node);
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

TEST(TensorRTExtents, ScaledAsInRealCalls) {
  IntDomain numbers({});
  for (int64_t extent = 1; extent < 3000; extent = extent * 5 / 4 + 1) {
    for (int tenths = 1; tenths < 45; ++tenths) {
      Builder builder;
      ExprsDomain domain(builder, {}, {});
      const double scale = tenths / 10.0;
      const auto* const size = static_cast<const Extent*>(domain.FloorScale(builder.Make(extent, false), scale));
      ASSERT_NE(size, nullptr) << domain.problem();
      EXPECT_EQ(size->value, numbers.FloorScale(extent, scale)) << extent << " * " << scale;
      EXPECT_FALSE(size->constant);
    }
  }
}

TEST(TensorRTPluginNames, AttributesSelectTheOperator) {
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
        "ambiguous node: attribute 'nsample' selects 'grid_ball_query', attribute 'max_radius' selects 'ball_query'");
  error({}, "attribute 'max_radius' is missing");
  error({nsample}, "attribute 'radius' is missing");
}

// Every error results in an error code and a message on stderr.
TEST(TensorRTPluginErrors, RejectsWrongAttributes) {
  const int32_t zero = 0, seven = 7;
  const char text[] = "median";
  using Type = nvinfer1::PluginFieldType;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RoiAlignOf({{"output_height", &zero, Type::kINT32, 1}}), nullptr);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("'output_height': expected a number in [1, 4096], got 0"),
            std::string::npos);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RoiAlignOf({{"output_height", &seven, Type::kINT32, 1}, {"mode", text, Type::kCHAR, 7}}), nullptr);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("median"), std::string::npos);
  EXPECT_NE(RoiAlignOf({{"output_height", &seven, Type::kINT32, 1}, {"not_known", nullptr, Type::kINT32, 0}}), nullptr);
}

TEST(TensorRTPluginErrors, RejectsWrongShapesAndTypes) {
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
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("'rois': expected dimension 1 to be 5, got 4"),
            std::string::npos);
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

// The signatures of nms have different output types. TensorRT asks for the type before it knows the inputs' ranks.
TEST(TensorRTPluginSignatures, SizeTensorsSelectTheOutputType) {
  const int32_t one = 1;
  const nvinfer1::DataType types[2] = {nvinfer1::DataType::kFLOAT, nvinfer1::DataType::kFLOAT};
  for (const bool batched : {false, true}) {
    const nvinfer1::PluginField field{kSizeTensorsField, &one, nvinfer1::PluginFieldType::kINT32, 1};
    const nvinfer1::PluginFieldCollection fields{batched ? 0 : 1, &field};
    const std::unique_ptr<nvinfer1::IPluginV3> plugin(
        CreatorOf("polyop::polyop_nms").createPlugin("l", &fields, nvinfer1::TensorRTPhase::kBUILD));
    ASSERT_NE(plugin, nullptr);
    auto& build = static_cast<nvinfer1::v_1_0::IPluginV3OneBuild&>(
        *plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kBUILD));
    auto& runtime = static_cast<nvinfer1::v_1_0::IPluginV3OneRuntime&>(
        *plugin->getCapabilityInterface(nvinfer1::PluginCapabilityType::kRUNTIME));
    const int32_t count = build.getNbOutputs();
    ASSERT_EQ(count, batched ? 1 : 2);
    nvinfer1::DataType output_types[2];
    ASSERT_EQ(build.getOutputDataTypes(output_types, count, types, 2), 0);
    EXPECT_EQ(output_types[0], batched ? nvinfer1::DataType::kINT32 : nvinfer1::DataType::kINT64);

    // Inputs of the other signature, and a type that is not the declared one.
    const nvinfer1::PluginTensorDesc one_set[] = {DescOf(DType::kF32, {3, 4}).desc, DescOf(DType::kF32, {3}).desc};
    const nvinfer1::PluginTensorDesc batch[] = {DescOf(DType::kF32, {1, 3, 4}).desc,
                                                DescOf(DType::kF32, {1, 2, 3}).desc};
    const nvinfer1::PluginTensorDesc keep[] = {DescOf(DType::kI64, {3}).desc, DescOf(DType::kI64, {}).desc};
    const nvinfer1::PluginTensorDesc selected[] = {DescOf(DType::kI32, {6, 3}).desc};
    const auto error = [&](const nvinfer1::PluginTensorDesc* inputs, const nvinfer1::PluginTensorDesc* outputs) {
      ::testing::internal::CaptureStderr();
      EXPECT_NE(runtime.onShapeChange(inputs, 2, outputs, count), 0);
      return ::testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(runtime.onShapeChange(batched ? batch : one_set, 2, batched ? selected : keep, count), 0);
    const std::string other = error(batched ? one_set : batch, batched ? selected : keep);
    EXPECT_NE(other.find(batched ? "expected attribute polyop_size_tensors = 1" : "expected no attribute"),
              std::string::npos)
        << other;
    const nvinfer1::PluginTensorDesc wrong[] = {DescOf(batched ? DType::kI64 : DType::kI32, {6, 3}).desc, keep[1]};
    const std::string type = error(batched ? batch : one_set, wrong);
    EXPECT_NE(type.find(batched ? "'selected': expected type i32" : "'keep': expected type i64"), std::string::npos)
        << type;
  }
}

TEST(TensorRTPluginErrors, RejectsRealShapeInputs) {
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
