// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/node_kernel.h"

#include <algorithm>
#include <span>

#include "adapters/onnxruntime/node_attributes.h"
#include "adapters/onnxruntime/session_call.h"
#include "core/call.h"
#include "core/context.h"
#include "core/device_run.h"
#include "core/reference.h"

namespace polyop::onnxruntime {
namespace {

#if POLYOP_CUDA
// The backend of a CUDA kernel's call: the session's stream and the memory of the node's execution provider.
class StreamBackend {
 public:
  explicit StreamBackend(const OrtKernelContext* context) : context_(context) {
    backend_.self = this;
    backend_.allocate = [](void* self, size_t bytes) { return static_cast<StreamBackend*>(self)->Allocate(bytes); };
  }
  // Freed memory may be reused only on the same stream, after this call's work.
  ~StreamBackend() {
    for (void* memory : memory_) allocator_->Free(allocator_, memory);
    if (allocator_ != nullptr) Api().ReleaseAllocator(allocator_);
  }
  StreamBackend(const StreamBackend&) = delete;
  StreamBackend& operator=(const StreamBackend&) = delete;

  // Takes the stream from the context and the allocator from the first input on a device.
  Status Open(size_t num_inputs) {
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelContext_GetGPUComputeStream(context_, &backend_.stream)));
    for (size_t i = 0; i < num_inputs && allocator_ == nullptr; ++i) {
      const OrtValue* value = nullptr;
      OrtMemoryInfoDeviceType type = OrtMemoryInfoDeviceType_CPU;
      POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelContext_GetInput(context_, i, &value)));
      if (value == nullptr) continue;
      POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorMemoryInfo(value, &memory_info_)));
      Api().MemoryInfoGetDeviceType(memory_info_, &type);
      if (type == OrtMemoryInfoDeviceType_CPU) continue;
      POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelContext_GetAllocator(context_, memory_info_, &allocator_)));
    }
    return allocator_ != nullptr ? Status::Ok() : Internal("no input is on the GPU");
  }
  const DeviceBackend& backend() const { return backend_; }

 private:
  // Scratch buffers from the arena are bound to the stream: no other stream can use them while this call's work runs.
  // ONNX Runtime before 1.18 lacks them, and they need a stream.
  void* Allocate(size_t bytes) {
    void* memory = nullptr;
    if (CurrentHost().version >= 18 && backend_.stream != nullptr) {
      if (!FromOrt(Api().KernelContext_GetScratchBuffer(context_, memory_info_, bytes, &memory)).ok()) return nullptr;
    } else {
      memory = allocator_->Alloc(allocator_, bytes);
    }
    if (memory != nullptr) memory_.push_back(memory);
    return memory;
  }

  const OrtKernelContext* context_;
  const OrtMemoryInfo* memory_info_ = nullptr;  // owned by an input
  OrtAllocator* allocator_ = nullptr;
  std::vector<void*> memory_;
  DeviceBackend backend_;
};
#endif

class NodeOutputs : public OutputSource {
 public:
  NodeOutputs(OrtKernelContext* context, const CustomOp& custom_op, const std::vector<bool>& requested)
      : context_(context), custom_op_(custom_op), requested_(requested) {}
  bool Requested(int index) override { return requested_[static_cast<size_t>(index)]; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    OrtValue* value = nullptr;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelContext_GetOutput(context_, static_cast<size_t>(index), shape.begin(),
                                                                 static_cast<size_t>(shape.rank()), &value)));
    if (value == nullptr) return Internal("output ", index, " could not be allocated");
    if (custom_op_.output_type_varies(index)) POLYOP_RETURN_IF_ERROR(CheckType(index, dtype, value));
    return FromOrt(Api().GetTensorMutableData(value, data));
  }

 private:
  // The type was fixed when the session was created, from the ranks known then.
  static Status CheckType(int index, DType dtype, const OrtValue* value) {
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorTypeAndShape(value, &raw)));
    const TypeAndShape info(raw);
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetTensorElementType(info.get(), &type)));
    if (type == ToOrt(dtype)) return Status::Ok();
    return InvalidArgument("output ", index, ": expected type ", NameOf(dtype),
                           " for inputs of these ranks, but the model was loaded with another type: ",
                           CurrentHost().version < kTypesByInference
                               ? "ONNX Runtime before 1.19 does not infer it from the ranks"
                               : "the model must state the ranks of the inputs");
  }

  OrtKernelContext* context_;
  const CustomOp& custom_op_;
  const std::vector<bool>& requested_;
};

}  // namespace

Status NodeKernel::Create(const CustomOp& custom_op, const OrtKernelInfo* info, std::unique_ptr<NodeKernel>* kernel) {
  std::unique_ptr<NodeKernel> node(new NodeKernel(custom_op));
  const std::string node_name = NodeNameOf(info);
  node->prefix_ = Concat(custom_op.node().name, node_name.empty() ? "" : " (node '" + node_name + "')", ": ");
  node->reference_ = UsesReferenceKernels();
  KernelAttributes attributes(info);
  NodeCandidate candidate;
  POLYOP_RETURN_IF_ERROR(ResolveNode(custom_op.candidates(), attributes, &candidate).WithPrefix(node->prefix_));
  node->op_ = candidate.op;
  POLYOP_RETURN_IF_ERROR(
      candidate.op->MakeParams(*candidate.node, attributes, &node->params_).WithPrefix(node->prefix_));
  size_t outputs = 0;
  for (int o = 0; o < custom_op.signature().num_outputs(); ++o) {
    node->requested_.push_back(OutputIsNamed(info, static_cast<size_t>(o)));
    if (node->requested_.back()) outputs = node->requested_.size();
  }
  POLYOP_RETURN_IF_ERROR(CheckOutputCount(custom_op.candidates(), candidate, outputs).WithPrefix(node->prefix_));
  const bool has_kernel = custom_op.kernel().launch != nullptr;
  if (custom_op.standard() != 0 && (!has_kernel || custom_op.op().leave_to_standard != nullptr)) {
    const Status status = RuntimeKernel::Create(custom_op, info, node->params_.get(), &node->runtime_kernel_);
    if (!status.ok() && !has_kernel) return status.WithPrefix(node->prefix_);
  }
  *kernel = std::move(node);
  return Status::Ok();
}

Status NodeKernel::Compute(OrtKernelContext* context) const { return Run(context).WithPrefix(prefix_); }

Status NodeKernel::Run(OrtKernelContext* context) const {
  std::vector<AnyTensor> inputs;
  POLYOP_RETURN_IF_ERROR(ReadInputs(context, &inputs));
  NodeOutputs outputs(context, custom_op_, requested_);
  if (LeaveToRuntime(inputs)) return RunRuntimeKernel(context, inputs, outputs);
#if POLYOP_CUDA
  if (custom_op_.kernel().device == Device::kCuda) {
    StreamBackend device(context);
    POLYOP_RETURN_IF_ERROR(device.Open(inputs.size()));
    return CallOnDevice(*op_, params_.get(), inputs, outputs, device.backend());
  }
#endif
  if (reference_) return CallReference(*op_, params_.get(), inputs, outputs);
  const SessionBackend session(context);
  const Context kernel_context(session.backend());
  return Call(*op_, Device::kCpu, params_.get(), inputs, outputs, &kernel_context);
}

bool NodeKernel::LeaveToRuntime(std::span<const AnyTensor> inputs) const {
  if (runtime_kernel_ == nullptr) return false;
  return custom_op_.kernel().launch == nullptr || custom_op_.op().leave_to_standard(params_.get(), inputs);
}

// Checks the call and computes its outputs' shapes like any other call, with the signature of the f64 reference kernel.
Status NodeKernel::RunRuntimeKernel(OrtKernelContext* context, std::span<const AnyTensor> inputs,
                                    OutputSource& source) const {
  const Signature& signature = custom_op_.signature();
  std::vector<AnyTensor> in_double(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (signature.input(static_cast<int>(i)).type_variable < 0) continue;
    in_double[i].dtype = DType::kF64;
    in_double[i].data = nullptr;
  }
  PreparedCall call;
  POLYOP_RETURN_IF_ERROR(Prepare(custom_op_.op(), Device::kReference, params_.get(), in_double, source, &call));
  std::vector<AnyTensor> outputs(call.output_span().begin(), call.output_span().end());
  for (size_t o = 0; o < outputs.size(); ++o) outputs[o].dtype = custom_op_.kernel().outputs[o];
  if (!call.empty) return runtime_kernel_->Run(context, inputs, outputs);
  for (size_t o = 0; o < outputs.size(); ++o) {
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(source.Allocate(static_cast<int>(o), outputs[o].dtype, outputs[o].shape, &data));
  }
  return Status::Ok();
}

}  // namespace polyop::onnxruntime
