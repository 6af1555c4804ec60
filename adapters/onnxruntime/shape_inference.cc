#include "adapters/onnxruntime/shape_inference.h"

#include <vector>

#include "adapters/onnxruntime/node_attributes.h"
#include "adapters/onnxruntime/symbolic_domain.h"

namespace polyop::onnxruntime {
namespace {

using SymbolicDims = Dims<SymbolicDim>;

// False when ONNX Runtime knows no shape of the input.
bool ReadShape(const OrtShapeInferContext* context, size_t index, SymbolicDims* dims) {
  const OrtApi& api = Api();
  OrtTensorTypeAndShapeInfo* info = nullptr;  // owned by the context
  if (!FromOrt(api.ShapeInferContext_GetInputTypeShape(context, index, &info)).ok() || info == nullptr) return false;
  size_t rank = 0;
  if (!FromOrt(api.GetDimensionsCount(info, &rank)).ok() || rank > kMaxRank) return false;
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

Status SetShape(OrtShapeInferContext* context, size_t index, DType dtype, const SymbolicDims& dims) {
  const OrtApi& api = Api();
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(api.CreateTensorTypeAndShapeInfo(&raw)));
  const TypeAndShape info(raw);
  int64_t values[kMaxRank] = {};
  const char* symbols[kMaxRank] = {};
  const size_t rank = static_cast<size_t>(dims.rank);
  for (size_t d = 0; d < rank; ++d) {
    values[d] = dims.dim[d].known ? dims.dim[d].value : -1;
    symbols[d] = dims.dim[d].text.c_str();
  }
  POLYOP_RETURN_IF_ERROR(FromOrt(api.SetTensorElementType(info.get(), ToOrt(dtype))));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.SetDimensions(info.get(), values, rank)));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.SetSymbolicDimensions(info.get(), symbols, rank)));
  return FromOrt(api.ShapeInferContext_SetOutputTypeShape(context, index, info.get()));
}

bool RanksFit(const Signature& signature, std::span<const SymbolicDims> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec& spec = signature.input(std::min(static_cast<int>(i), signature.num_inputs() - 1));
    if (inputs[i].present && !spec.has_rest && inputs[i].rank != spec.rank && spec.rank != 0) return false;
  }
  return true;
}

}  // namespace

Status InferShapes(const CustomOp& custom_op, OrtShapeInferContext* context) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().ShapeInferContext_GetInputCount(context, &count)));
  std::vector<SymbolicDims> inputs(count);
  const Op& op = custom_op.op();
  const Kernel* kernel = &custom_op.kernel();
  for (size_t i = 0; i < count; ++i) {
    if (ReadShape(context, i, &inputs[i])) continue;
    const Signature& s = custom_op.signature();
    if (!s.input(std::min(static_cast<int>(i), s.num_inputs() - 1)).optional) return Status::Ok();
    inputs[i].present = false;
  }
  for (const Kernel& other : op.kernels) {
    if (other.device == kernel->device && other.inputs == kernel->inputs &&
        RanksFit(*op.signatures[other.signature].signature, inputs)) {
      kernel = &other;
      break;
    }
  }
  InferenceAttributes attributes(context);
  Params params;
  if (!op.MakeParams(custom_op.node(), attributes, &params).ok()) return Status::Ok();
  const OpSignature& resolved = op.signatures[kernel->signature];
  SymbolicDomain domain;
  ShapeEvaluator<SymbolicDomain> evaluator(resolved, op, params.get(), domain);
  if (!evaluator.Bind(inputs).ok()) return Status::Ok();
  for (int o = 0; o < resolved.signature->num_outputs(); ++o) {
    SymbolicDims dims;
    if (!evaluator.Output(o, &dims).ok()) continue;
    const Status status = SetShape(context, static_cast<size_t>(o), kernel->outputs[o], dims);
    if (!status.ok() && !resolved.signature->output(o).optional) return status;
  }
  return Status::Ok();
}

}  // namespace polyop::onnxruntime
