// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/shape_inference.h"

#include <vector>

#include "adapters/onnxruntime/node_attributes.h"
#include "adapters/onnxruntime/symbolic_domain.h"

namespace polyop::onnxruntime {
namespace {

// Reads the type and shape of an input. Returns false if it is missing.
bool ReadInput(const OrtShapeInferContext* context, size_t index, KnownInput* input, Dims<SymbolicDim>* dims) {
  const OrtApi& api = Api();
  OrtTensorTypeAndShapeInfo* info = nullptr;  // owned by the context
  if (!FromOrt(api.ShapeInferContext_GetInputTypeShape(context, index, &info)).ok() || info == nullptr) return false;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  DType dtype = DType::kF32;
  if (FromOrt(api.GetTensorElementType(info, &type)).ok() && FromOrt(type, &dtype)) input->dtype = dtype;
  size_t rank = 0;
  if (!FromOrt(api.GetDimensionsCount(info, &rank)).ok() || rank > kMaxRank) return false;
  if (rank > 0) input->rank = static_cast<int>(rank);  // a tensor of unknown rank appears as one of rank 0
  int64_t values[kMaxRank] = {};
  const char* symbols[kMaxRank] = {};
  if (!FromOrt(api.GetDimensions(info, values, rank)).ok()) return false;
  if (!FromOrt(api.GetSymbolicDimensions(info, symbols, rank)).ok()) return false;
  for (size_t d = 0; d < rank; ++d) {
    const bool known = values[d] >= 0;
    dims->push_back({known, values[d], known || symbols[d] == nullptr ? std::string() : std::string(symbols[d])});
  }
  return true;
}

Status SetShape(OrtShapeInferContext* context, size_t index, DType dtype, const Dims<SymbolicDim>& dims) {
  const OrtApi& api = Api();
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(api.CreateTensorTypeAndShapeInfo(&raw)));
  const TypeAndShape info(raw);
  int64_t values[kMaxRank] = {};
  const char* symbols[kMaxRank] = {};
  std::string texts[kMaxRank];
  const size_t rank = static_cast<size_t>(dims.rank);
  for (size_t d = 0; d < rank; ++d) {
    const SymbolicDim& dim = dims.dim[d];
    // An extent without value and symbol would become -1, on which ONNX's own inference aborts.
    texts[d] = !dim.known && dim.text.empty() ? SymbolicDomain::FreshSymbol("unknown") : dim.text;
    values[d] = dim.known ? dim.value : -1;
    symbols[d] = texts[d].c_str();
  }
  POLYOP_RETURN_IF_ERROR(FromOrt(api.SetTensorElementType(info.get(), ToOrt(dtype))));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.SetDimensions(info.get(), values, rank)));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.SetSymbolicDimensions(info.get(), symbols, rank)));
  return FromOrt(api.ShapeInferContext_SetOutputTypeShape(context, index, info.get()));
}

// Handles inputs of unknown rank. ONNX Runtime knows the outputs' types, except for those that vary with the rank:
// these are set to the type and rank in `signature`, and the kernel checks them in each run.
Status SetVaryingTypes(const CustomOp& custom_op, const Kernel& kernel, const Signature& signature,
                       OrtShapeInferContext* context) {
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (!custom_op.output_type_varies(o)) continue;
    if (custom_op.may_lack_output(o) && CurrentHost().release < kChecksOutputIndex) continue;
    Dims<SymbolicDim> unknown;
    for (int d = 0; d < signature.output(o).rank; ++d) unknown.push_back({});
    POLYOP_RETURN_IF_ERROR(SetShape(context, static_cast<size_t>(o), kernel.outputs[o], unknown));
  }
  return Status::Ok();
}

// Returns an output's type. For an overridden standard operator, a variable type is that of the first input.
DType OutputType(const CustomOp& custom_op, const Kernel& kernel, int output, std::span<const KnownInput> inputs) {
  if (custom_op.standard() == 0) return kernel.outputs[output];
  const Signature& signature = *custom_op.op().signatures[kernel.signature].signature;
  const bool varies = signature.output(output).type_variable >= 0;
  return varies ? inputs[0].dtype.value_or(kernel.outputs[output]) : kernel.outputs[output];
}

}  // namespace

Status InferShapes(const CustomOp& custom_op, OrtShapeInferContext* context) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().ShapeInferContext_GetInputCount(context, &count)));
  std::vector<Dims<SymbolicDim>> shapes(count);
  std::vector<KnownInput> inputs(count);
  InferenceAttributes attributes(context);
  NodeCandidate candidate;
  if (!ResolveNode(custom_op.candidates(), attributes, &candidate).ok()) return Status::Ok();
  const Op& op = *candidate.op;
  for (size_t i = 0; i < count; ++i) {
    inputs[i].present = shapes[i].present = ReadInput(context, i, &inputs[i], &shapes[i]);
  }
  // ONNX Runtime calls one overload of a name for all of them, so the kernel is searched again.
  const Kernel* kernel = op.FindKernel(custom_op.kernel().device, inputs);
  if (kernel == nullptr && custom_op.standard() != 0) {  // a type that only the runtime's kernels support
    std::vector<KnownInput> of_any_type = inputs;
    for (KnownInput& input : of_any_type) input.dtype.reset();
    kernel = op.FindKernel(custom_op.kernel().device, of_any_type);
  }
  if (kernel == nullptr) return Status::Ok();
  Params params;
  if (!op.MakeParams(*candidate.node, attributes, &params).ok()) return Status::Ok();
  const OpSignature& resolved = op.signatures[kernel->signature];
  SymbolicDomain domain;
  ShapeEvaluator<SymbolicDomain> evaluator(resolved, op, params.get(), domain);
  for (size_t i = 0; i < count; ++i) {
    const Signature& s = *resolved.signature;
    const TensorSpec& spec = SpecOf(s, i);
    const bool scalar = spec.rank == 0 && !spec.has_rest;
    if (shapes[i].present && !inputs[i].rank && !scalar) return SetVaryingTypes(custom_op, *kernel, s, context);
  }
  if (!evaluator.Bind(shapes).ok()) return Status::Ok();
  for (int o = 0; o < resolved.signature->num_outputs(); ++o) {
    // Shape inference cannot determine which of its optional outputs the node has.
    if (custom_op.may_lack_output(o) && CurrentHost().release < kChecksOutputIndex) continue;
    Dims<SymbolicDim> output;
    if (!evaluator.Output(o, &output).ok()) continue;
    const DType type = OutputType(custom_op, *kernel, o, inputs);
    const Status status = SetShape(context, static_cast<size_t>(o), type, output);
    if (!status.ok() && !custom_op.may_lack_output(o)) return status;
  }
  return Status::Ok();
}

}  // namespace polyop::onnxruntime
