#include "adapters/tensorrt/plugin.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <new>

#include "adapters/tensorrt/exprs_domain.h"
#include "core/call.h"
#include "core/cuda_context.h"
#include "core/device_run.h"

namespace polyop::tensorrt {
namespace {

using nvinfer1::DataType;

constexpr int32_t kFailure = -1;

bool FromTensorRT(DataType type, DType* dtype) {
  switch (type) {
    case DataType::kFLOAT: *dtype = DType::kF32; return true;
    case DataType::kHALF: *dtype = DType::kF16; return true;
    case DataType::kBF16: *dtype = DType::kBF16; return true;
    case DataType::kINT8: *dtype = DType::kI8; return true;
    case DataType::kUINT8: *dtype = DType::kU8; return true;
    case DataType::kINT32: *dtype = DType::kI32; return true;
    case DataType::kINT64: *dtype = DType::kI64; return true;
    case DataType::kBOOL: *dtype = DType::kBool; return true;
    default: return false;
  }
}

bool ToTensorRT(DType dtype, DataType* type) {
  for (const DataType candidate : {DataType::kFLOAT, DataType::kHALF, DataType::kBF16, DataType::kINT8,
                                   DataType::kUINT8, DataType::kINT32, DataType::kINT64, DataType::kBOOL}) {
    DType same;
    if (!FromTensorRT(candidate, &same) || same != dtype) continue;
    *type = candidate;
    return true;
  }
  return false;
}

Shape ShapeOf(const nvinfer1::Dims& dims) {
  return Shape(std::span<const int64_t>(dims.d, static_cast<size_t>(std::max(dims.nbDims, 0))));
}

// Which inputs of the signature are TensorRT's shape inputs. Operators with such inputs have one signature.
bool IsShapeInput(const Op& op, int input) {
  return op.signatures.size() == 1 && input < op.signatures[0].signature->num_inputs() &&
         op.signatures[0].needs_value(input);
}

// The signature's inputs from the plugin's: shape inputs, which exist on the build's side only, have no data. Trailing
// optional inputs may be missing; one of shape [0], which stands for the empty name that the ONNX parser refuses,
// counts as left out.
template <class Describe>
std::vector<AnyTensor> InputsOf(const Op& op, int32_t num_inputs, const Describe& describe) {
  const AnyTensor kShapeInput{nullptr, DType::kI64, true, {}};
  std::vector<AnyTensor> inputs;
  for (int32_t at = 0; at < num_inputs;) {
    if (IsShapeInput(op, static_cast<int>(inputs.size()))) {
      inputs.push_back(kShapeInput);
      continue;
    }
    AnyTensor tensor = describe(at++);
    const Signature& signature = *op.signatures[0].signature;
    if (SpecOf(signature, inputs.size()).optional && tensor.shape == Shape{0}) tensor.present = false;
    inputs.push_back(tensor);
  }
  while (IsShapeInput(op, static_cast<int>(inputs.size()))) inputs.push_back(kShapeInput);
  return inputs;
}

// Shape inputs are of any integer type: the kernels differ in what nobody reads.
Status FindKernel(const Op& op, std::vector<AnyTensor>* inputs, const Kernel** kernel) {
  for (const DType integer : {DType::kI64, DType::kI32, DType::kF32}) {
    for (size_t i = 0; i < inputs->size(); ++i) {
      if (IsShapeInput(op, static_cast<int>(i))) (*inputs)[i].dtype = integer;
    }
    if (op.FindKernel(GpuDevice(), *inputs, kernel).ok()) break;
  }
  return op.FindKernel(GpuDevice(), *inputs, kernel);
}

AnyTensor FromDesc(const nvinfer1::PluginTensorDesc& desc, const nvinfer1::Dims& dims, const void* data) {
  AnyTensor tensor;
  tensor.data = const_cast<void*>(data);
  tensor.present = FromTensorRT(desc.type, &tensor.dtype);
  tensor.shape = ShapeOf(dims);
  return tensor;
}

// Runs what may throw for a caller that must not see it.
template <class Result, class F>
Result Guarded(const std::string& plugin, Result failure, const F& f) noexcept {
  try {
    return f();
  } catch (const std::exception& e) {
    Report(plugin, Internal(e.what()));
  } catch (...) {
    Report(plugin, Internal("an unknown exception"));
  }
  return failure;
}

int32_t CodeOf(const std::string& plugin, const Status& status) {
  if (status.ok()) return 0;
  Report(plugin, status);
  return kFailure;
}

// The outputs' memory, which TensorRT has allocated.
class GivenOutputs : public OutputSource {
 public:
  GivenOutputs(int count, void* const* outputs, std::span<const int> size_tensors)
      : count_(count), outputs_(outputs), size_tensors_(size_tensors) {}
  bool Wanted(int index) override { return index < count_; }
  Status Allocate(int index, DType, const Shape&, void** data) override {
    *data = outputs_[index];
    return Status::Ok();
  }
  Status AllocateMost(int index, DType, const Shape&, void** data, int64_t** count) override {
    *data = outputs_[index];
    *count = static_cast<int64_t*>(outputs_[size_tensors_[static_cast<size_t>(index)]]);
    return Status::Ok();
  }

 private:
  int count_;
  void* const* outputs_;
  std::span<const int> size_tensors_;
};

// The outputs as TensorRT describes them; those behind `count` are size tensors.
template <class Describe>
std::vector<AnyTensor> OutputsOf(int32_t count, const Describe& describe) {
  std::vector<AnyTensor> outputs;
  outputs.reserve(count);
  for (int32_t o = 0; o < count; ++o) outputs.push_back(describe(o));
  return outputs;
}

}  // namespace

void Report(std::string_view plugin, const Status& status) noexcept {
  std::fprintf(stderr, "polyop: TensorRT plugin %.*s: %s\n", static_cast<int>(plugin.size()), plugin.data(),
               status.message().c_str());
}

struct Plugin::Call {
  PreparedCall prepared;
  std::vector<AnyTensor> inputs;  // without data
  std::vector<int> size_tensors;  // of each output: which output of the plugin holds its size, or -1
  size_t scratch = 0;             // bytes
};

// All signatures of an operator have the same outputs, but for their extents. Optional ones are the last.
Plugin::Plugin(const Op& op, const NodeName& node, std::shared_ptr<const void> params, bool size_tensors)
    : op_(op), node_(node), name_(node.op_type()), params_(std::move(params)), size_tensors_(size_tensors) {
  const Signature& signature = *op.signatures[0].signature;
  num_outputs_ = signature.num_outputs();
  for (int o = signature.num_outputs() - 1; o >= 0 && signature.output(o).optional; --o) {
    const AttrInfo* wanted = op.FindAttribute("return_" + std::string(signature.output(o).name));
    if (wanted == nullptr || wanted->get(wanted->spec, params_.get()).ints[0] == 0) num_outputs_ = o;
  }
}

nvinfer1::IPluginCapability* Plugin::getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept {
  switch (type) {
    case nvinfer1::PluginCapabilityType::kCORE: return static_cast<nvinfer1::IPluginV3OneCore*>(this);
    case nvinfer1::PluginCapabilityType::kBUILD: return static_cast<nvinfer1::v_1_0::IPluginV3OneBuild*>(this);
    case nvinfer1::PluginCapabilityType::kRUNTIME: return static_cast<nvinfer1::v_1_0::IPluginV3OneRuntime*>(this);
  }
  return nullptr;
}

nvinfer1::IPluginV3* Plugin::clone() noexcept {
  return Guarded<nvinfer1::IPluginV3*>(name_, nullptr, [&]() -> nvinfer1::IPluginV3* {
    auto copy = std::make_unique<Plugin>(op_, node_, params_, size_tensors_);
    copy->call_ = call_;
    return copy.release();
  });
}

int Plugin::NumPending() const {
  int least = kMaxTensors, most = 0;
  for (const OpSignature& resolved : op_.signatures) {
    int pending = 0;
    for (int o = 0; o < NumOutputs(); ++o) pending += resolved.signature->output(o).pending();
    least = std::min(least, pending);
    most = std::max(most, pending);
  }
  return size_tensors_ ? most : least;
}

int32_t Plugin::getNbOutputs() const noexcept { return NumOutputs() + NumPending(); }

int32_t Plugin::getOutputDataTypes(DataType* output_types, int32_t num_outputs, const DataType* input_types,
                                   int32_t num_inputs) const noexcept {
  return Guarded<int32_t>(name_, kFailure, [&] {
    // Shapes are not known here; the types alone choose the outputs' types.
    std::vector<AnyTensor> inputs = InputsOf(op_, num_inputs, [&](int32_t i) {
      AnyTensor tensor;
      tensor.present = FromTensorRT(input_types[i], &tensor.dtype);
      tensor.shape = {1};
      return tensor;
    });
    const Kernel* kernel = nullptr;
    const Status status = FindKernel(op_, &inputs, &kernel);
    if (!status.ok()) return CodeOf(name_, status);
    for (int32_t o = 0; o < num_outputs; ++o) {
      output_types[o] = DataType::kINT64;  // size tensors
      if (o < NumOutputs() && !ToTensorRT(kernel->outputs[static_cast<size_t>(o)], &output_types[o])) {
        return CodeOf(name_, Unsupported("TensorRT has no type ", NameOf(kernel->outputs[static_cast<size_t>(o)])));
      }
    }
    return 0;
  });
}

Status Plugin::FindSignature(std::span<const AnyTensor> inputs, int* signature) const {
  for (size_t s = 0; s < op_.signatures.size(); ++s) {
    *signature = static_cast<int>(s);
    if (RanksMatch(*op_.signatures[s].signature, inputs) || op_.signatures.size() == 1)
      return Status::Ok();  // the checks will say what is wrong
  }
  return InvalidArgument("no signature has inputs of these ranks");
}

int32_t Plugin::getOutputShapes(const nvinfer1::DimsExprs* inputs, int32_t num_inputs,
                                const nvinfer1::DimsExprs* shape_inputs, int32_t num_shape_inputs,
                                nvinfer1::DimsExprs* outputs, int32_t num_outputs,
                                nvinfer1::IExprBuilder& builder) noexcept {
  return Guarded<int32_t>(name_, kFailure, [&] {
    int at = 0;
    std::vector<AnyTensor> tensors = InputsOf(op_, num_inputs, [&](int32_t i) {
      AnyTensor tensor;
      tensor.present = true;
      for (int d = 0; d < inputs[i].nbDims; ++d) {
        const nvinfer1::IDimensionExpr& extent = *inputs[i].d[d];
        tensor.shape.push_back(extent.isConstant() ? extent.getConstantValue() : 1);
      }
      return tensor;
    });
    int signature_index = 0;
    Status status = FindSignature(tensors, &signature_index);
    if (!status.ok()) return CodeOf(name_, status);
    const OpSignature& resolved = op_.signatures[static_cast<size_t>(signature_index)];
    const Signature& signature = *resolved.signature;
    std::vector<int> value_index(static_cast<size_t>(signature.num_inputs()), -1);
    int wanted = 0;
    for (int i = 0; i < signature.num_inputs(); ++i) {
      if (IsShapeInput(op_, i)) value_index[static_cast<size_t>(i)] = wanted++;
    }
    if (wanted != num_shape_inputs) {
      return CodeOf(name_, InvalidArgument(num_shape_inputs, " shape inputs came, wanted ", wanted,
                                           ": the node's attribute tensorrt_plugin_shape_input_indices names them "
                                           "(`polyop convert` and preprocess_onnx write it)"));
    }
    ExprsDomain domain(builder, {shape_inputs, static_cast<size_t>(num_shape_inputs)}, value_index);
    std::vector<Dims<ExprsDomain::Dim>> extents(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      extents[i].present = tensors[i].present;
      if (IsShapeInput(op_, static_cast<int>(i))) {
        for (int d = 0; d < signature.input(static_cast<int>(i)).rank; ++d) {
          extents[i].push_back(domain.Const(shape_inputs[value_index[i]].nbDims));
        }
        continue;
      }
      for (int d = 0; d < inputs[at].nbDims; ++d) extents[i].push_back(inputs[at].d[d]);
      ++at;
    }
    ShapeEvaluator<ExprsDomain> evaluator(resolved, op_, params_.get(), domain);
    status = evaluator.Bind(extents);
    if (!status.ok()) return CodeOf(name_, status);
    int size_tensor = NumOutputs();
    for (int o = 0; o < std::min(num_outputs, NumOutputs()); ++o) {
      if (signature.output(o).pending()) {
        if (size_tensor == num_outputs) {
          return CodeOf(name_, InvalidArgument("inputs of these ranks give outputs of unknown size, which need size "
                                               "tensors: attribute ",
                                               kSizeTensorsField,
                                               " = 1 and an output for each "
                                               "(`polyop convert` and preprocess_onnx write them)"));
        }
        domain.StartOutput(size_tensor++);
      }
      Dims<ExprsDomain::Dim> dims;
      status = evaluator.Output(o, &dims);
      if (status.ok() && !domain.problem().empty()) {
        status = Unsupported("output '", signature.output(o).name, "': ", domain.problem());
      }
      if (!status.ok()) return CodeOf(name_, status);
      outputs[o].nbDims = dims.rank;
      std::copy_n(dims.dim.begin(), dims.rank, outputs[o].d);
    }
    for (int o = NumOutputs(); o < num_outputs; ++o) outputs[o].nbDims = 0;
    return 0;
  });
}

bool Plugin::supportsFormatCombination(int32_t position, const nvinfer1::DynamicPluginTensorDesc* tensors,
                                       int32_t num_inputs, int32_t num_outputs) noexcept {
  return Guarded<bool>(name_, false, [&] {
    const auto type_at = [&](int32_t i) { return tensors[i].desc.type; };
    if (tensors[position].desc.format != nvinfer1::TensorFormat::kLINEAR) return false;
    if (position >= num_inputs + NumOutputs() && position < num_inputs + num_outputs) {
      return type_at(position) == DataType::kINT64;
    }
    for (const Kernel& kernel : op_.kernels) {
      if (kernel.device != GpuDevice()) continue;
      const Signature& signature = *op_.signatures[static_cast<size_t>(kernel.signature)].signature;
      bool fits = true;
      int input = 0;
      for (int32_t i = 0; i <= position && fits; ++i) {
        DType dtype;
        fits = FromTensorRT(type_at(i), &dtype);
        if (i >= num_inputs) {
          fits = fits && kernel.outputs[static_cast<size_t>(i - num_inputs)] == dtype;
          continue;
        }
        while (IsShapeInput(op_, input)) ++input;
        const int spec = std::min(input++, signature.num_inputs() - 1);
        fits = fits && (signature.input(spec).any_dtype || kernel.inputs[static_cast<size_t>(spec)] == dtype);
      }
      if (fits) return true;
    }
    return false;
  });
}

int32_t Plugin::configurePlugin(const nvinfer1::DynamicPluginTensorDesc*, int32_t,
                                const nvinfer1::DynamicPluginTensorDesc*, int32_t) noexcept {
  return 0;  // all is decided by the shapes of a call
}

size_t Plugin::getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, int32_t num_inputs,
                                const nvinfer1::DynamicPluginTensorDesc* outputs, int32_t num_outputs) const noexcept {
  constexpr size_t kNoWorkspace = size_t{1} << 60;  // there is no code for failure: nobody has so much
  return Guarded<size_t>(name_, kNoWorkspace, [&]() -> size_t {
    std::vector<AnyTensor> tensors =
        InputsOf(op_, num_inputs, [&](int32_t i) { return FromDesc(inputs[i].desc, inputs[i].max, nullptr); });
    const std::vector<AnyTensor> results = OutputsOf(std::min(num_outputs, NumOutputs()), [&](int32_t o) {
      return FromDesc(outputs[o].desc, outputs[o].max, nullptr);
    });
    // The largest extents of a profile need not belong together: they are not checked here.
    const Kernel* kernel = nullptr;
    PreparedCall call;
    size_t bytes = 0;
    Status status = FindKernel(op_, &tensors, &kernel);
    if (status.ok()) status = PrepareWithShapes(op_, GpuDevice(), params_.get(), tensors, results, &call);
    if (status.ok()) status = MeasureScratch(call, tensors, &bytes);
    if (status.ok()) return bytes;
    Report(name_, status);
    return kNoWorkspace;
  });
}

int32_t Plugin::onShapeChange(const nvinfer1::PluginTensorDesc* inputs, int32_t num_inputs,
                              const nvinfer1::PluginTensorDesc* outputs, int32_t num_outputs) noexcept {
  return Guarded<int32_t>(name_, kFailure, [&] {
    auto call = std::make_shared<Call>();
    call->inputs = InputsOf(op_, num_inputs, [&](int32_t i) { return FromDesc(inputs[i], inputs[i].dims, nullptr); });
    const Kernel* kernel = nullptr;
    Status status = FindKernel(op_, &call->inputs, &kernel);
    // Values that decide shapes are not told here; TensorRT has made the outputs' shapes of them.
    bool told = true;
    for (size_t i = 0; i < call->inputs.size(); ++i) told = told && !IsShapeInput(op_, static_cast<int>(i));
    const int32_t count = std::min(num_outputs, NumOutputs());
    GivenOutputs wanted(count, nullptr, {});
    if (status.ok() && told) {
      status = Prepare(op_, GpuDevice(), params_.get(), call->inputs, wanted, &call->prepared);
    } else if (status.ok()) {
      const auto results = OutputsOf(count, [&](int32_t o) { return FromDesc(outputs[o], outputs[o].dims, nullptr); });
      status = PrepareWithShapes(op_, GpuDevice(), params_.get(), call->inputs, results, &call->prepared);
    }
    if (!status.ok()) return CodeOf(name_, status);
    int size_tensor = NumOutputs();
    for (int32_t o = 0; o < count; ++o) {
      call->size_tensors.push_back(call->prepared.signature().output(o).pending() ? size_tensor++ : -1);
    }
    status = MeasureScratch(call->prepared, call->inputs, &call->scratch);
    call_ = std::move(call);
    return CodeOf(name_, status);
  });
}

int32_t Plugin::enqueue(const nvinfer1::PluginTensorDesc*, const nvinfer1::PluginTensorDesc*, const void* const* inputs,
                        void* const* outputs, void* workspace, cudaStream_t stream) noexcept {
  return Guarded<int32_t>(name_, kFailure, [&] {
    if (call_ == nullptr) return CodeOf(name_, Internal("enqueue came before onShapeChange"));
    std::vector<AnyTensor> tensors = call_->inputs;
    int at = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!IsShapeInput(op_, static_cast<int>(i))) tensors[i].data = const_cast<void*>(inputs[at++]);
    }
    const CudaContext cuda(stream, workspace, call_->scratch);
    GivenOutputs source(static_cast<int>(call_->size_tensors.size()), outputs, call_->size_tensors);
    Status status = Run(call_->prepared, tensors, source, &cuda);
    // Where there is nothing to launch, no kernel writes that nothing was found.
    for (const int size_tensor : call_->size_tensors) {
      if (!status.ok() || !call_->prepared.empty || size_tensor < 0) continue;
      status = TheGpuMemory().zero(stream, outputs[size_tensor], sizeof(int64_t));
    }
    return CodeOf(name_, status);
  });
}

const nvinfer1::PluginFieldCollection* Plugin::getFieldsToSerialize() noexcept {
  return Guarded<const nvinfer1::PluginFieldCollection*>(name_, nullptr, [&] {
    fields_ = std::make_unique<Fields>();
    for (const AttrInfo& info : op_.attributes) {
      fields_->Add(node_.NameOf(info.spec.name), info.get(info.spec, params_.get()));
    }
    fields_->Add(kSizeTensorsField, AttrValue::Int(size_tensors_ ? 1 : 0));
    return fields_->collection();
  });
}

void Creator::Add(const Op& op, const NodeName& node) {
  // By the name of another domain.
  const auto is_known = [&](const Meaning& known) {
    return known.op == &op && (known.node->when.attribute == nullptr) == (node.when.attribute == nullptr);
  };
  if (std::any_of(meanings_.begin(), meanings_.end(), is_known)) return;
  meanings_.push_back({&op, &node});
  fields_.Add(kSizeTensorsField, AttrType::kInt);
  for (const AttrInfo& info : op.attributes) {
    fields_.Add(node.NameOf(info.spec.name), info.type);
    for (const char* alias : info.spec.aliases) {
      if (alias != nullptr) fields_.Add(alias, info.type);
    }
  }
}

nvinfer1::IPluginV3* Creator::createPlugin(const char*, const nvinfer1::PluginFieldCollection* fields,
                                           nvinfer1::TensorRTPhase) noexcept {
  return Guarded<nvinfer1::IPluginV3*>(name_, nullptr, [&]() -> nvinfer1::IPluginV3* {
    FieldAttributes source(fields);
    Meaning meaning;
    Params params;
    Status status = ChooseMeaning(meanings_, source, &meaning);
    if (status.ok()) status = meaning.op->MakeParams(*meaning.node, source, &params);
    if (!status.ok()) {
      Report(name_, status);
      return nullptr;
    }
    AttrValue size_tensors;
    const bool wants_sizes =
        source.Get(kSizeTensorsField, &size_tensors) && size_tensors.ints == std::vector<int64_t>{1};
    return std::make_unique<Plugin>(*meaning.op, *meaning.node, std::move(params), wants_sizes).release();
  });
}

const std::vector<std::unique_ptr<Creator>>& Creators() {
  static auto* names = new std::deque<std::string>();
  static auto* nodes = new std::deque<NodeName>();
  static const auto* creators = [] {
    auto* made = new std::vector<std::unique_ptr<Creator>>();  // TensorRT keeps pointers to them until the end
    std::map<std::string_view, Creator*> known;
    const auto add = [&](const Op& op, const NodeName& node) {
      Creator*& creator = known[node.op_type()];
      if (creator == nullptr) creator = made->emplace_back(std::make_unique<Creator>(node)).get();
      creator->Add(op, node);
    };
    for (const Op* op : AllOps()) {
      const bool runs = std::any_of(op->kernels.begin(), op->kernels.end(),
                                    [](const Kernel& kernel) { return kernel.device == GpuDevice(); });
      if (!runs) continue;
      for (const NodeName& node : op->nodes) add(*op, node);
      // A name that no runtime has for a node of its own, unlike NonMaxSuppression or ScatterND.
      const std::string& name = names->emplace_back("polyop::polyop_" + std::string(op->name));
      add(*op, nodes->emplace_back(name.c_str()));
    }
    return made;
  }();
  return *creators;
}

}  // namespace polyop::tensorrt
