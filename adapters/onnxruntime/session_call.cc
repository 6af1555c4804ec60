// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/session_call.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/reference.h"

namespace polyop::onnxruntime {
namespace {

// ONNX Runtime creates the kernels of a session on the thread that creates the session.
thread_local std::optional<bool> reference_kernels;

// A parallel loop of a call.
struct Loop {
  void (*body)(void*, int64_t);
  void* argument;
  const Host& host;
};

}  // namespace

void UseReferenceKernels(std::optional<bool> use) { reference_kernels = use; }

bool UsesReferenceKernels() { return reference_kernels.value_or(ReferenceRequested()); }

std::string NodeNameOf(const OrtKernelInfo* info) {
  size_t size = 0;
  if (!FromOrt(Api().KernelInfo_GetNodeName(info, nullptr, &size)).ok() || size == 0) return "";
  std::string name(size, '\0');
  if (!FromOrt(Api().KernelInfo_GetNodeName(info, name.data(), &size)).ok()) return "";
  name.resize(size - 1);  // without the terminator
  return name;
}

bool OutputIsNamed(const OrtKernelInfo* info, size_t index) {
  size_t count = 0, size = 0;
  if (!FromOrt(Api().KernelInfo_GetOutputCount(info, &count)).ok() || index >= count) return false;
  return FromOrt(Api().KernelInfo_GetOutputName(info, index, nullptr, &size)).ok() && size > 1;
}

Status ReadInput(const OrtKernelContext* context, size_t index, AnyTensor* tensor) {
  const OrtApi& api = Api();
  const OrtValue* value = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(api.KernelContext_GetInput(context, index, &value)));
  if (value == nullptr) return Status::Ok();  // missing
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(api.GetTensorTypeAndShape(value, &raw)));
  const TypeAndShape info(raw);
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(api.GetTensorElementType(info.get(), &type)));
  POLYOP_RETURN_IF_ERROR(FromOrt(api.GetDimensionsCount(info.get(), &rank)));
  if (!FromOrt(type, &tensor->dtype)) return Unsupported("input ", index, ": unsupported element type");
  std::array<int64_t, kMaxRank> dims{};
  const size_t kept = std::min<size_t>(rank, kMaxRank);
  POLYOP_RETURN_IF_ERROR(FromOrt(api.GetDimensions(info.get(), dims.data(), kept)));
  tensor->shape = Shape(std::span<const int64_t>(dims.data(), kept));
  for (size_t d = kept; d < rank; ++d) tensor->shape.push_back(0);  // the call reports the excessive rank
  tensor->present = true;
  // The C API has one accessor for reading and writing; inputs are only read.
  return FromOrt(api.GetTensorMutableData(const_cast<OrtValue*>(value), &tensor->data));
}

Status ReadInputs(const OrtKernelContext* context, std::vector<AnyTensor>* inputs) {
  size_t count = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().KernelContext_GetInputCount(context, &count)));
  inputs->resize(count);
  for (size_t i = 0; i < count; ++i) POLYOP_RETURN_IF_ERROR(ReadInput(context, i, &(*inputs)[i]));
  return Status::Ok();
}

bool CallOutputs::Requested(int index) {
  return static_cast<size_t>(index) < indices_.size() && indices_[static_cast<size_t>(index)] >= 0;
}

Status CallOutputs::Allocate(int index, DType, const Shape& shape, void** data) {
  OrtValue* value = nullptr;
  const auto own = static_cast<size_t>(indices_[static_cast<size_t>(index)]);
  POLYOP_RETURN_IF_ERROR(
      FromOrt(Api().KernelContext_GetOutput(context_, own, shape.begin(), static_cast<size_t>(shape.rank()), &value)));
  if (value == nullptr) return Internal("output ", index, " could not be allocated");
  return FromOrt(Api().GetTensorMutableData(value, data));
}

SessionBackend::SessionBackend(const OrtKernelContext* context) : context_(context) {
  backend_.self = this;
  backend_.parallel = Parallel;
  backend_.allocate = Allocate;
  backend_.release = Release;
}

SessionBackend::~SessionBackend() {
  if (allocator_ != nullptr) Api().ReleaseAllocator(allocator_);
  if (memory_info_ != nullptr) Api().ReleaseMemoryInfo(memory_info_);
}

void SessionBackend::Parallel(void* self, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
  Loop loop{body, argument, CurrentHost()};
  const Status status = FromOrt(Api().KernelContext_ParallelFor(
      static_cast<SessionBackend*>(self)->context_,
      [](void* data, size_t i) {
        const Loop& l = *static_cast<const Loop*>(data);
        const HostScope scope(l.host);  // on the runtime's thread
        l.body(l.argument, static_cast<int64_t>(i));
      },
      static_cast<size_t>(tasks), 0, &loop));
  if (status.ok()) return;
  for (int64_t i = 0; i < tasks; ++i) body(argument, i);  // there is no thread pool, but the loop must run
}

void* SessionBackend::Allocate(void* self, size_t bytes) {
  auto* session = static_cast<SessionBackend*>(self);
  if (session->allocator_ == nullptr && !session->FindAllocator().ok()) return nullptr;
  return session->allocator_->Alloc(session->allocator_, bytes);
}

void SessionBackend::Release(void* self, void* memory) {
  OrtAllocator* allocator = static_cast<SessionBackend*>(self)->allocator_;
  allocator->Free(allocator, memory);
}

Status SessionBackend::FindAllocator() {
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory_info_)));
  return FromOrt(Api().KernelContext_GetAllocator(context_, memory_info_, &allocator_));
}

Status RunInSession(const StandardKernel& kernel, bool reference, OrtKernelContext* context,
                    const std::vector<AnyTensor>& inputs, const std::vector<int>& outputs) {
  CallOutputs of_call(context, outputs);
  if (reference) return kernel.Run(inputs, of_call, nullptr);
  const SessionBackend session(context);
  const Context kernel_context(session.backend());
  return kernel.Run(inputs, of_call, &kernel_context);
}

}  // namespace polyop::onnxruntime
