// SPDX-License-Identifier: Apache-2.0
#include "adapters/tensorrt/plugin.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <new>

#include "adapters/tensorrt/exprs_domain.h"
#include "core/call.h"
#include "core/cuda_context.h"
#include "core/device_run.h"
#include "core/guard.h"

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

// Returns true if an input of the signature is a TensorRT shape input. Operators with such inputs have one signature.
bool IsShapeInput(const Op& op, int input) {
  return op.signatures.size() == 1 && input < op.signatures[0].signature->num_inputs() &&
         op.signatures[0].needs_value(input);
}

AnyTensor FromDesc(const nvinfer1::PluginTensorDesc& desc, const nvinfer1::Dims& dims, const void* data) {
  AnyTensor tensor;
  tensor.data = const_cast<void*>(data);
  tensor.present = FromTensorRT(desc.type, &tensor.dtype);
  tensor.shape = ShapeOf(dims);
  return tensor;
}

// Runs f; if it throws, reports the exception and returns `failure`.
template <class Result, class F>
Result Guarded(const std::string& plugin, Result failure, const F& f) noexcept {
  return polyop::Guarded([&]() -> Result { return f(); },
                         [&](const char* message) -> Result {
                           Report(plugin, message);
                           return failure;
                         });
}

int32_t CodeOf(const std::string& plugin, const Status& status) {
  if (status.ok()) return 0;
  Report(plugin, status.message().c_str());
  return kFailure;
}

// Returns an error if TensorRT allocated an output with another type than the kernel writes.
Status CheckType(const TensorSpec& spec, const nvinfer1::PluginTensorDesc& desc, DType written) {
  DType declared;
  if (FromTensorRT(desc.type, &declared) && declared == written) return Status::Ok();
  return Internal("output '", spec.name, "': expected type ", NameOf(written), ", got TensorRT's type ",
                  static_cast<int>(desc.type));
}

// Returns an integer field, or 0.
int64_t IntegerOf(FieldAttributes& fields, const char* name) {
  AttrValue value;
  return fields.Get(name, &value) && value.ints.size() == 1 ? value.ints[0] : 0;
}

// Outputs in memory that TensorRT allocated.
class GivenOutputs : public OutputSource {
 public:
  GivenOutputs(int count, void* const* outputs, std::span<const int> size_tensors)
      : count_(count), outputs_(outputs), size_tensors_(size_tensors) {}
  bool Requested(int index) override { return index < count_; }
  Status Allocate(int index, DType, const Shape&, void** data) override {
    *data = outputs_[index];
    return Status::Ok();
  }
  Status AllocateUpperBound(int index, DType, const Shape&, void** data, int64_t** count) override {
    *data = outputs_[index];
    *count = static_cast<int64_t*>(outputs_[size_tensors_[static_cast<size_t>(index)]]);
    return Status::Ok();
  }

 private:
  int count_;
  void* const* outputs_;
  std::span<const int> size_tensors_;
};

// Returns the first `count` outputs as TensorRT describes them; the others are size tensors.
template <class Describe>
std::vector<AnyTensor> OutputsOf(int32_t count, const Describe& describe) {
  std::vector<AnyTensor> outputs;
  outputs.reserve(count);
  for (int32_t o = 0; o < count; ++o) outputs.push_back(describe(o));
  return outputs;
}

}  // namespace

void Report(std::string_view plugin, const char* message) noexcept {
  std::fprintf(stderr, "polyop: TensorRT plugin %.*s: %s\n", static_cast<int>(plugin.size()), plugin.data(), message);
}

struct Plugin::Call {
  PreparedCall prepared;
  std::vector<AnyTensor> inputs;  // without data
  std::vector<int> size_tensors;  // for each output: the plugin output with its size, or -1
  size_t scratch = 0;             // bytes
};

// All signatures of an operator have the same number of outputs. Optional outputs are last.
Plugin::Plugin(const Op& op, const NodeName& node, std::shared_ptr<const void> params, const NodeForm& form)
    : op_(op), node_(node), name_(node.op_type()), params_(std::move(params)), form_(form) {
  const Signature& signature = *op.signatures[0].signature;
  num_outputs_ = signature.num_outputs();
  for (int o = signature.num_outputs() - 1; o >= 0 && signature.output(o).optional; --o) {
    const AttrInfo* requested = op.FindAttribute("return_" + std::string(signature.output(o).name));
    if (requested == nullptr || requested->get(requested->spec, params_.get()).ints[0] == 0) num_outputs_ = o;
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
    auto copy = std::make_unique<Plugin>(op_, node_, params_, form_);
    copy->call_ = call_;
    return copy.release();
  });
}

int Plugin::NumPending(const Signature& signature) const {
  int pending = 0;
  for (int o = 0; o < NumOutputs(); ++o) pending += signature.output(o).pending();
  return pending;
}

int Plugin::NumPending() const {
  int min = kMaxTensors, max = 0;
  for (const OpSignature& resolved : op_.signatures) {
    min = std::min(min, NumPending(*resolved.signature));
    max = std::max(max, NumPending(*resolved.signature));
  }
  return form_.size_tensors ? max : min;
}

int32_t Plugin::getNbOutputs() const noexcept { return NumOutputs() + NumPending(); }

// Shape inputs, which exist only when the engine is built, have no data. Trailing optional inputs may be missing.
template <class Describe>
std::vector<AnyTensor> Plugin::InputsOf(int32_t num_inputs, const Describe& describe) const {
  const AnyTensor kShapeInput{nullptr, DType::kI64, true, {}};
  std::vector<AnyTensor> inputs;
  for (int32_t at = 0; at < num_inputs;) {
    if (IsShapeInput(op_, static_cast<int>(inputs.size()))) {
      inputs.push_back(kShapeInput);
      continue;
    }
    AnyTensor tensor = describe(at++);
    if (form_.lacks(inputs.size())) tensor.present = false;
    inputs.push_back(tensor);
  }
  while (IsShapeInput(op_, static_cast<int>(inputs.size()))) inputs.push_back(kShapeInput);
  return inputs;
}

Status Plugin::CheckSignature(const Signature& signature) const {
  const int needed = NumPending(signature);
  if (needed == NumPending()) return Status::Ok();
  if (needed > NumPending()) {
    return InvalidArgument(
        "inputs of these ranks give outputs of unknown size, which need size tensors: expected "
        "attribute ",
        kSizeTensorsField, " = 1 and an output for each, got ", NumPending(),
        " (`polyop convert` and preprocess_onnx write them)");
  }
  return InvalidArgument("inputs of these ranks give outputs of known size: expected no attribute ", kSizeTensorsField,
                         " and no output for a size, got ", NumPending(),
                         " (`polyop convert` and preprocess_onnx choose by the inputs' ranks in the model)");
}

// The kernels do not read shape inputs, which may have any integer type.
Status Plugin::FindKernel(std::vector<AnyTensor>* inputs, const Kernel** kernel) const {
  for (const DType integer : {DType::kI64, DType::kI32, DType::kF32}) {
    for (size_t i = 0; i < inputs->size(); ++i) {
      if (IsShapeInput(op_, static_cast<int>(i))) (*inputs)[i].dtype = integer;
    }
    for (const OpSignature& resolved : op_.signatures) {
      const Signature& signature = *resolved.signature;
      if (NumPending(signature) != NumPending()) continue;
      std::vector<KnownInput> known;
      for (size_t i = 0; i < inputs->size(); ++i) {
        const TensorSpec& spec = SpecOf(signature, i);
        known.push_back({(*inputs)[i].present, (*inputs)[i].dtype, spec.rank - (spec.has_rest ? 1 : 0)});
      }
      *kernel = op_.FindKernel(GpuDevice(), known);
      if (*kernel == nullptr) continue;
      if (NumPending(*op_.signatures[static_cast<size_t>((*kernel)->signature)].signature) == NumPending())
        return Status::Ok();
    }
  }
  POLYOP_RETURN_IF_ERROR(op_.FindKernel(GpuDevice(), *inputs, kernel));
  return CheckSignature(*op_.signatures[static_cast<size_t>((*kernel)->signature)].signature);
}

int32_t Plugin::getOutputDataTypes(DataType* output_types, int32_t num_outputs, const DataType* input_types,
                                   int32_t num_inputs) const noexcept {
  return Guarded<int32_t>(name_, kFailure, [&] {
    // Shapes are unknown here: the input types and the number of size tensors determine the output types.
    std::vector<AnyTensor> inputs = InputsOf(num_inputs, [&](int32_t i) {
      AnyTensor tensor;
      tensor.present = FromTensorRT(input_types[i], &tensor.dtype);
      return tensor;
    });
    const Kernel* kernel = nullptr;
    const Status status = FindKernel(&inputs, &kernel);
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
    if (op_.signatures.size() == 1) return Status::Ok();  // the checks report the error
    if (RanksMatch(*op_.signatures[s].signature, inputs)) return CheckSignature(*op_.signatures[s].signature);
  }
  return InvalidArgument("no signature matches the ranks of these inputs");
}

int32_t Plugin::getOutputShapes(const nvinfer1::DimsExprs* inputs, int32_t num_inputs,
                                const nvinfer1::DimsExprs* shape_inputs, int32_t num_shape_inputs,
                                nvinfer1::DimsExprs* outputs, int32_t num_outputs,
                                nvinfer1::IExprBuilder& builder) noexcept {
  return Guarded<int32_t>(name_, kFailure, [&] {
    int at = 0;
    std::vector<AnyTensor> tensors = InputsOf(num_inputs, [&](int32_t i) {
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
    int num_values = 0;
    for (int i = 0; i < signature.num_inputs(); ++i) {
      if (IsShapeInput(op_, i)) value_index[static_cast<size_t>(i)] = num_values++;
    }
    if (num_values != num_shape_inputs) {
      return CodeOf(name_, InvalidArgument("expected ", num_values, " shape inputs, got ", num_shape_inputs,
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
          return CodeOf(name_, Internal("expected ", getNbOutputs(), " outputs, got ", num_outputs));
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
      bool fits = NumPending(signature) == NumPending();
      size_t input = 0;
      for (int32_t i = 0; i <= position && fits; ++i) {
        while (IsShapeInput(op_, static_cast<int>(input))) ++input;
        if (i < num_inputs && form_.lacks(input++)) continue;
        DType dtype;
        fits = FromTensorRT(type_at(i), &dtype);
        if (i >= num_inputs) {
          fits = fits && kernel.outputs[static_cast<size_t>(i - num_inputs)] == dtype;
          continue;
        }
        const int spec = SpecIndex(signature, input - 1);
        fits = fits && (signature.input(spec).any_dtype || kernel.inputs[static_cast<size_t>(spec)] == dtype);
      }
      if (fits) return true;
    }
    return false;
  });
}

int32_t Plugin::configurePlugin(const nvinfer1::DynamicPluginTensorDesc*, int32_t,
                                const nvinfer1::DynamicPluginTensorDesc*, int32_t) noexcept {
  return 0;  // everything depends on the shapes of a call
}

size_t Plugin::getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, int32_t num_inputs,
                                const nvinfer1::DynamicPluginTensorDesc* outputs, int32_t num_outputs) const noexcept {
  constexpr size_t kNoWorkspace = size_t{1} << 60;  // there is no error code; no GPU has this much memory
  return Guarded<size_t>(name_, kNoWorkspace, [&]() -> size_t {
    using Extents = nvinfer1::Dims nvinfer1::DynamicPluginTensorDesc::*;
    const auto measure = [&](Extents extents, size_t* bytes) -> Status {
      std::vector<AnyTensor> tensors =
          InputsOf(num_inputs, [&](int32_t i) { return FromDesc(inputs[i].desc, inputs[i].*extents, nullptr); });
      const std::vector<AnyTensor> results = OutputsOf(std::min(num_outputs, NumOutputs()), [&](int32_t o) {
        return FromDesc(outputs[o].desc, outputs[o].*extents, nullptr);
      });
      const Kernel* kernel = nullptr;
      PreparedCall call;
      POLYOP_RETURN_IF_ERROR(FindKernel(&tensors, &kernel));
      POLYOP_RETURN_IF_ERROR(PrepareMaxima(op_, GpuDevice(), params_.get(), tensors, results, &call));
      POLYOP_RETURN_IF_ERROR(CheckSignature(call.signature()));
      return MeasureScratch(call, tensors, bytes);
    };
    // The extents of the optimum are those of one call, so it must be valid. The maxima of a profile need not belong
    // together. If no call has them, the optimum's workspace is used, and a call that needs more reports that.
    size_t at_optimum = 0, at_maxima = 0;
    const std::vector<AnyTensor> optimum =
        InputsOf(num_inputs, [&](int32_t i) { return FromDesc(inputs[i].desc, inputs[i].opt, nullptr); });
    Status status = measure(&nvinfer1::DynamicPluginTensorDesc::opt, &at_optimum);
    if (status.ok()) status = op_.check_inputs(params_.get(), optimum);
    if (status.ok()) {
      if (!measure(&nvinfer1::DynamicPluginTensorDesc::max, &at_maxima).ok()) at_maxima = 0;
      return std::max(at_optimum, at_maxima);
    }
    Report(name_, status.message().c_str());
    return kNoWorkspace;
  });
}

int32_t Plugin::onShapeChange(const nvinfer1::PluginTensorDesc* inputs, int32_t num_inputs,
                              const nvinfer1::PluginTensorDesc* outputs, int32_t num_outputs) noexcept {
  return Guarded<int32_t>(name_, kFailure, [&] {
    auto call = std::make_shared<Call>();
    call->inputs = InputsOf(num_inputs, [&](int32_t i) { return FromDesc(inputs[i], inputs[i].dims, nullptr); });
    const Kernel* kernel = nullptr;
    Status status = FindKernel(&call->inputs, &kernel);
    // Values that determine shapes are not available here; TensorRT computed the outputs' shapes from them.
    bool has_values = true;
    for (size_t i = 0; i < call->inputs.size(); ++i) has_values = has_values && !IsShapeInput(op_, static_cast<int>(i));
    const int32_t count = std::min(num_outputs, NumOutputs());
    GivenOutputs outputs_without_data(count, nullptr, {});
    if (status.ok() && has_values) {
      status = Prepare(op_, GpuDevice(), params_.get(), call->inputs, outputs_without_data, &call->prepared);
    } else if (status.ok()) {
      const auto results = OutputsOf(count, [&](int32_t o) { return FromDesc(outputs[o], outputs[o].dims, nullptr); });
      status = PrepareWithShapes(op_, GpuDevice(), params_.get(), call->inputs, results, &call->prepared);
    }
    if (status.ok()) status = CheckSignature(call->prepared.signature());
    for (int32_t o = 0; o < count && status.ok(); ++o) {
      status = CheckType(call->prepared.signature().output(o), outputs[o], call->prepared.kernel->outputs[o]);
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
    if (call_ == nullptr) return CodeOf(name_, Internal("enqueue was called before onShapeChange"));
    std::vector<AnyTensor> tensors = call_->inputs;
    int at = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!IsShapeInput(op_, static_cast<int>(i))) tensors[i].data = const_cast<void*>(inputs[at++]);
    }
    const CudaContext cuda(stream, workspace, call_->scratch);
    GivenOutputs source(static_cast<int>(call_->size_tensors.size()), outputs, call_->size_tensors);
    Status status = Run(call_->prepared, tensors, source, &cuda);
    // If no kernel is launched, the sizes that it would find are set to 0 here.
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
    fields_->Add(kSizeTensorsField, AttrValue::Int(form_.size_tensors ? 1 : 0));
    fields_->Add(kMissingInputsField, AttrValue::Int(form_.missing_inputs));
    return fields_->collection();
  });
}

void Creator::Add(const Op& op, const NodeName& node) {
  // The operator may have been added under the name of another domain.
  const auto is_known = [&](const NodeCandidate& known) {
    return known.op == &op && (known.node->when.attribute == nullptr) == (node.when.attribute == nullptr);
  };
  if (std::any_of(candidates_.begin(), candidates_.end(), is_known)) return;
  candidates_.push_back({&op, &node});
  fields_.Add(kSizeTensorsField, AttrType::kInt);
  fields_.Add(kMissingInputsField, AttrType::kInt);
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
    NodeCandidate candidate;
    Params params;
    Status status = ResolveNode(candidates_, source, &candidate);
    if (status.ok()) status = candidate.op->MakeParams(*candidate.node, source, &params);
    if (!status.ok()) {
      Report(name_, status.message().c_str());
      return nullptr;
    }
    NodeForm form;
    form.size_tensors = IntegerOf(source, kSizeTensorsField) == 1;
    form.missing_inputs = IntegerOf(source, kMissingInputsField);
    return std::make_unique<Plugin>(*candidate.op, *candidate.node, std::move(params), form).release();
  });
}

const std::vector<std::unique_ptr<Creator>>& Creators() {
  static auto* names = new std::deque<std::string>();
  static auto* nodes = new std::deque<NodeName>();
  static const auto* creators = [] {
    auto* created = new std::vector<std::unique_ptr<Creator>>();  // TensorRT keeps pointers to them until the end
    std::map<std::string_view, Creator*> known;
    const auto add = [&](const Op& op, const NodeName& node) {
      Creator*& creator = known[node.op_type()];
      if (creator == nullptr) creator = created->emplace_back(std::make_unique<Creator>(node)).get();
      creator->Add(op, node);
    };
    for (const Op* op : AllOps()) {
      const bool runs = std::any_of(op->kernels.begin(), op->kernels.end(),
                                    [](const Kernel& kernel) { return kernel.device == GpuDevice(); });
      if (!runs) continue;
      for (const NodeName& node : op->nodes) add(*op, node);
      // A name that no runtime uses for its own nodes, unlike NonMaxSuppression or ScatterND.
      const std::string& name = names->emplace_back("polyop::polyop_" + std::string(op->name));
      add(*op, nodes->emplace_back(name.c_str()));
    }
    return created;
  }();
  return *creators;
}

}  // namespace polyop::tensorrt
