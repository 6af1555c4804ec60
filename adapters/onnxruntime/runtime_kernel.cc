// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/runtime_kernel.h"

#include <algorithm>
#include <string>
#include <vector>

#include "adapters/onnxruntime/node_attributes.h"
#include "core/elements.h"

namespace polyop::onnxruntime {
namespace {

struct ReleaseValue {
  void operator()(OrtValue* value) const { Api().ReleaseValue(value); }
};

// A copy of an f16 tensor in f32.
struct Widened {
  std::vector<float> data;
  std::unique_ptr<OrtValue, ReleaseValue> value;

  Status Make(const Shape& shape) {
    OrtMemoryInfo* memory = nullptr;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory)));
    OrtValue* raw = nullptr;
    data.resize(static_cast<size_t>(shape.NumElements().value_or(0)));
    const Status status = FromOrt(Api().CreateTensorWithDataAsOrtValue(memory, data.data(), data.size() * sizeof(float),
                                                                       shape.begin(), static_cast<size_t>(shape.rank()),
                                                                       ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &raw));
    Api().ReleaseMemoryInfo(memory);
    value.reset(raw);
    return status;
  }
};

struct Attributes {
  std::vector<Attribute> owned;
  std::vector<const OrtOpAttr*> raw;

  Status Add(const char* name, const AttrValue& value) {
    POLYOP_RETURN_IF_ERROR(MakeAttribute(name, value, &owned.emplace_back()));
    raw.push_back(owned.back().get());
    return Status::Ok();
  }
};

// Reads the node's attributes and adds the defaults of the others, which a kernel that is created without a schema does
// not know. A list of zeros is the kernel's own default, or stands for extents that the kernel infers. The spellings of
// choices differ between versions, so for missing choices the kernel's default is used.
Status ReadAttributes(const CustomOp& custom_op, const OrtKernelInfo* info, const void* params, Attributes* read) {
  KernelAttributes given(info);
  for (const AttrInfo& attribute : custom_op.op().attributes) {
    AttrValue value;
    const char* const name = custom_op.node().NameOf(attribute.spec.name);
    if (!given.Get(name, &value)) {
      if (attribute.spec.int_coded) continue;
      value = attribute.get(attribute.spec, params);
      const auto is_zero = [](int64_t v) { return v == 0; };
      if (value.type == AttrType::kInts && std::all_of(value.ints.begin(), value.ints.end(), is_zero)) continue;
    }
    POLYOP_RETURN_IF_ERROR(read->Add(name, value));
  }
  return Status::Ok();
}

}  // namespace

Status RuntimeKernel::Create(const CustomOp& custom_op, const OrtKernelInfo* info, const void* params,
                             std::unique_ptr<RuntimeKernel>* kernel) {
  Attributes attributes;
  POLYOP_RETURN_IF_ERROR(ReadAttributes(custom_op, info, params, &attributes));
  const NodeName& node = custom_op.node();
  const std::string op_type(node.op_type());
  size_t inputs = 0, outputs = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelInfo_GetInputCount(info, &inputs)));
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelInfo_GetOutputCount(info, &outputs)));
  const auto& types = custom_op.kernel().inputs;
  const bool half = std::find(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(inputs), DType::kF16) !=
                    types.begin() + static_cast<std::ptrdiff_t>(inputs);
  const bool widen = half && custom_op.provider() == nullptr;
  const ONNXTensorElementDataType type = widen ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : ToOrt(types[0]);
  Status status;
  // The standard calls an operator's first type T or T1. A runtime may have only an older version with equal semantics.
  for (auto version = node.standards.rbegin(); version != node.standards.rend(); ++version) {
    if (version->since == 0 || version->since > custom_op.standard()) continue;
    if (version->since < custom_op.standard() && version->preset.first != nullptr) break;
    for (const char* variable : {"T", "T1"}) {
      OrtOp* op = nullptr;
      status = FromOrt(Api().CreateOp(info, op_type.c_str(), "", version->since, &variable, &type, 1,
                                      attributes.raw.data(), static_cast<int>(attributes.raw.size()),
                                      static_cast<int>(inputs), static_cast<int>(outputs), &op));
      if (!status.ok()) continue;
      kernel->reset(new RuntimeKernel(op, widen));
      return status;
    }
  }
  return Unsupported("ONNX Runtime has no ", op_type, " for ", NameOf(types[0]), ": ", status.message());
}

RuntimeKernel::~RuntimeKernel() { Api().ReleaseOp(op_); }

Status RuntimeKernel::Run(OrtKernelContext* context, std::span<const AnyTensor> inputs,
                          std::span<const AnyTensor> outputs) const {
  std::vector<const OrtValue*> from(inputs.size());
  std::vector<OrtValue*> own(outputs.size()), to(outputs.size());
  std::vector<Widened> widened(inputs.size() + outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelContext_GetInput(context, i, &from[i])));
    if (!widen_ || !inputs[i].present || inputs[i].dtype != DType::kF16) continue;
    POLYOP_RETURN_IF_ERROR(widened[i].Make(inputs[i].shape));
    const Half* const data = static_cast<const Half*>(inputs[i].data);
    std::transform(data, data + widened[i].data.size(), widened[i].data.begin(), [](Half v) { return ToFloat(v); });
    from[i] = widened[i].value.get();
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Shape& shape = outputs[o].shape;
    POLYOP_RETURN_IF_ERROR(
        FromOrt(Api().KernelContext_GetOutput(context, o, shape.begin(), static_cast<size_t>(shape.rank()), &own[o])));
    to[o] = own[o];
    if (!widen_ || outputs[o].dtype != DType::kF16) continue;
    POLYOP_RETURN_IF_ERROR(widened[inputs.size() + o].Make(shape));
    to[o] = widened[inputs.size() + o].value.get();
  }
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().InvokeOp(context, op_, from.data(), static_cast<int>(from.size()), to.data(),
                                                static_cast<int>(to.size()))));
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (to[o] == own[o]) continue;
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorMutableData(own[o], &data)));
    const std::vector<float>& wide = widened[inputs.size() + o].data;
    std::transform(wide.begin(), wide.end(), static_cast<Half*>(data), [](float v) { return FromFloat<Half>(v); });
  }
  return Status::Ok();
}

}  // namespace polyop::onnxruntime
