// SPDX-License-Identifier: Apache-2.0
// The C interface (adapters/c/polyop.h): one function that calls every operator.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/call.h"
#include "core/context.h"
#include "core/device_run.h"
#include "core/guard.h"
#include "core/library.h"
#include "platform/exported.h"
#include "platform/memory.h"

#define POLYOP_API POLYOP_EXPORTED  // expands where polyop.h declares the functions
#include "adapters/c/polyop.h"

namespace polyop {
namespace {

static_assert(POLYOP_BOOL == static_cast<int>(DType::kBool) && POLYOP_BOOL + 1 == kNumDTypes);

class GivenAttributes : public AttrSource {
 public:
  explicit GivenAttributes(std::span<const polyop_attribute> attributes) : attributes_(attributes) {}

  /// Checks the names and kinds, which the definition does not check for nodes.
  Status Check(const Op& op) const {
    for (const polyop_attribute& attribute : attributes_) {
      if (attribute.name == nullptr) return InvalidArgument("expected an attribute with a name, got a null pointer");
      if (op.FindAttribute(attribute.name) == nullptr) {
        return InvalidArgument("expected attributes of the operator, got '", attribute.name, "'");
      }
      const std::string name = Concat("attribute '", attribute.name, "'");
      if (attribute.kind < POLYOP_INT || attribute.kind > POLYOP_TEXT) {
        return InvalidArgument(name, ": expected a kind in [", int{POLYOP_INT}, ", ", int{POLYOP_TEXT}, "], got ",
                               attribute.kind);
      }
      const bool list = attribute.kind == POLYOP_INTS || attribute.kind == POLYOP_FLOATS;
      if (attribute.count < 0) return InvalidArgument(name, ": expected at least 0 values, got ", attribute.count);
      if (attribute.values == nullptr && !(list && attribute.count == 0)) {
        return InvalidArgument(name, ": expected values, got a null pointer");
      }
    }
    return Status::Ok();
  }

  bool Get(const char* name, AttrValue* value) override {
    const auto found = std::ranges::find_if(
        attributes_, [&](const polyop_attribute& attribute) { return std::strcmp(attribute.name, name) == 0; });
    if (found == attributes_.end()) return false;
    const auto* const ints = static_cast<const int64_t*>(found->values);
    const auto* const floats = static_cast<const double*>(found->values);
    switch (found->kind) {
      case POLYOP_INT: *value = AttrValue::Int(*ints); break;
      case POLYOP_FLOAT: *value = AttrValue::Float(*floats); break;
      case POLYOP_INTS: *value = AttrValue::Ints({ints, ints + found->count}); break;
      case POLYOP_FLOATS: *value = AttrValue::Floats({floats, floats + found->count}); break;
      default: *value = AttrValue::String(static_cast<const char*>(found->values)); break;
    }
    return true;
  }

 private:
  std::span<const polyop_attribute> attributes_;
};

class CallersOutputs : public OutputSource {
 public:
  CallersOutputs(const Op& op, const polyop_outputs& outputs) : op_(op), outputs_(outputs) {}
  bool Requested(int) override { return true; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    *data = outputs_.allocate(outputs_.self, index, static_cast<int32_t>(dtype), shape.rank(), shape.begin());
    return CheckMemory(index, dtype, shape, *data);
  }

 protected:
  const Op& op() const { return op_; }
  Status CheckMemory(int index, DType dtype, const Shape& shape, const void* data) const {
    if (data != nullptr || shape.NumElements() == 0) return Status::Ok();
    return InvalidArgument("output '", op_.signatures[0].signature->output(index).name, "': expected memory for ",
                           NameOf(dtype), ToString(shape), ", got a null pointer");
  }

 private:
  const Op& op_;
  const polyop_outputs& outputs_;
};

// Outputs in device memory. Those of found size have their upper bound, and a count of 0 if no kernel is called.
class CallersDeviceOutputs : public CallersOutputs {
 public:
  CallersDeviceOutputs(const Op& op, const polyop_outputs& outputs, const polyop_device& device)
      : CallersOutputs(op, outputs), device_(device) {}
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    if (!op().signatures[0].signature->output(index).pending()) {
      return CallersOutputs::Allocate(index, dtype, shape, data);
    }
    int64_t* count = nullptr;
    POLYOP_RETURN_IF_ERROR(AllocateUpperBound(index, dtype, shape, data, &count));
    return TheGpuMemory().zero(device_.stream, count, sizeof(int64_t));
  }
  Status AllocateUpperBound(int index, DType dtype, const Shape& shape, void** data, int64_t** count) override {
    *count = nullptr;
    *data =
        device_.allocate_found(device_.self, index, static_cast<int32_t>(dtype), shape.rank(), shape.begin(), count);
    POLYOP_RETURN_IF_ERROR(CheckMemory(index, dtype, shape, *data));
    if (*count != nullptr) return Status::Ok();
    return InvalidArgument("output ", index, ": expected memory for a count, got a null pointer");
  }

 private:
  const polyop_device& device_;
};

Status ReadInput(const Op& op, size_t number, const polyop_tensor& given, AnyTensor* view) {
  const Signature& signature = *op.signatures[0].signature;
  const int last = signature.num_inputs() - 1;  // the tensors of a variadic input share its name
  const std::string name = Concat("'", signature.input(std::min(static_cast<int>(number), last)).name, "'");
  if (given.rank == -1) return Status::Ok();
  if (given.rank < -1) return InvalidArgument(name, ": expected a rank of at least -1, got ", given.rank);
  if (given.rank > 0 && given.shape == nullptr) return InvalidArgument(name, ": expected a shape, got a null pointer");
  if (given.type < 0 || given.type >= kNumDTypes) return InvalidArgument(name, ": unsupported element type");
  view->present = true;
  view->dtype = static_cast<DType>(given.type);
  for (int d = 0; d < given.rank; ++d) {
    if (given.shape[d] < 0) {
      return InvalidArgument(name, ": expected dimension ", d, " to be at least 0, got ", given.shape[d]);
    }
    view->shape.push_back(given.shape[d]);
  }
  if (given.data == nullptr && view->shape.NumElements() != 0) {
    return InvalidArgument(name, ": expected data, got a null pointer");
  }
  view->data = const_cast<void*>(given.data);  // inputs are only read
  return Status::Ok();
}

// Returns the caller's parallel loop, or a loop on the calling thread, with the system's memory.
ContextBackend BackendOf(const polyop_threads* threads) {
  ContextBackend backend;
  backend.parallel = [](void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
    for (int64_t i = 0; i < tasks; ++i) body(argument, i);
  };
  if (threads != nullptr) backend.self = threads->self, backend.parallel = threads->run;
  backend.allocate = [](void*, size_t bytes) -> void* { return AllocateAligned(bytes); };
  backend.release = [](void*, void* memory) { FreeAligned(memory); };
  return backend;
}

template <class T>
Status CheckList(const char* what, int32_t count, const T* items) {
  if (count < 0) return InvalidArgument("expected at least 0 ", what, ", got ", count);
  if (count > 0 && items == nullptr) return InvalidArgument("expected ", count, " ", what, ", got a null pointer");
  return Status::Ok();
}

// A call whose operator and attributes are checked.
struct GivenCall {
  const Op* op = nullptr;
  Params params;
  std::vector<AnyTensor> inputs;

  Status Read(const char* name, std::span<const polyop_tensor> tensors, std::span<const polyop_attribute> attributes) {
    static const Status registry = CheckRegistry();
    POLYOP_RETURN_IF_ERROR(registry);
    op = FindOp(name);
    if (op == nullptr) return InvalidArgument("there is no such operator; polyop_catalogue() lists all");
    inputs.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) POLYOP_RETURN_IF_ERROR(ReadInput(*op, i, tensors[i], &inputs[i]));
    while (!inputs.empty() && !inputs.back().present) inputs.pop_back();
    GivenAttributes given(attributes);
    POLYOP_RETURN_IF_ERROR(given.Check(*op));
    return op->MakeParams(NodeName(), given, &params);
  }
};

Status CallOnHost(const GivenCall& call, const polyop_outputs& outputs, const polyop_threads* threads) {
  if (threads != nullptr && threads->run == nullptr) {
    return InvalidArgument("expected a parallel loop in threads, got a null pointer");
  }
  CallersOutputs source(*call.op, outputs);
  const ContextBackend backend = BackendOf(threads);
  const Context context(backend);
  return Call(*call.op, Device::kCpu, call.params.get(), call.inputs, source, &context);
}

Status CheckDevice(const polyop_device* device) {
  if (device == nullptr || device->allocate == nullptr || device->allocate_found == nullptr) {
    return InvalidArgument("expected functions that allocate device memory, got a null pointer");
  }
  if (TheGpuMemory().copy == nullptr) return InvalidArgument("this library has no CUDA kernels");
  return Status::Ok();
}

Status CallOnGpu(const GivenCall& call, const polyop_outputs& outputs, const polyop_device* device) {
  POLYOP_RETURN_IF_ERROR(CheckDevice(device));
  CallersDeviceOutputs source(*call.op, outputs, *device);
  PreparedCall prepared;
  return LaunchOnDevice(*call.op, call.params.get(), call.inputs, source,
                        {device->self, device->stream, device->allocate}, &prepared);
}

// Reads the call, passes it to `run`, and returns the C interface's error.
template <class Function>
const char* Answer(const char* op, int32_t num_inputs, const polyop_tensor* inputs, int32_t num_attributes,
                   const polyop_attribute* attributes, const polyop_outputs* outputs, const Function& run) {
  static thread_local std::string message;
  const auto checked = [&]() -> Status {
    if (op == nullptr) return InvalidArgument("expected an operator's name, got a null pointer");
    if (outputs == nullptr || outputs->allocate == nullptr) {
      return InvalidArgument("expected a function that allocates outputs, got a null pointer");
    }
    POLYOP_RETURN_IF_ERROR(CheckList("inputs", num_inputs, inputs));
    POLYOP_RETURN_IF_ERROR(CheckList("attributes", num_attributes, attributes));
    GivenCall call;
    POLYOP_RETURN_IF_ERROR(
        call.Read(op, {inputs, static_cast<size_t>(num_inputs)}, {attributes, static_cast<size_t>(num_attributes)}));
    return run(call);
  };
  return Guarded(
      [&]() -> const char* {
        const Status status = checked();
        if (status.ok()) return nullptr;
        message = Concat(LibraryName(), "::", op == nullptr ? "" : op, ": ", status.message());
        return message.c_str();
      },
      [](const char*) -> const char* { return "out of memory, or an internal error"; });
}

}  // namespace
}  // namespace polyop

const char* polyop_call(const char* op, int32_t num_inputs, const polyop_tensor* inputs, int32_t num_attributes,
                        const polyop_attribute* attributes, const polyop_outputs* outputs,
                        const polyop_threads* threads) {
  return polyop::Answer(op, num_inputs, inputs, num_attributes, attributes, outputs,
                        [&](const polyop::GivenCall& call) { return polyop::CallOnHost(call, *outputs, threads); });
}

const char* polyop_call_on_device(const char* op, int32_t num_inputs, const polyop_tensor* inputs,
                                  int32_t num_attributes, const polyop_attribute* attributes,
                                  const polyop_outputs* outputs, const polyop_device* device) {
  return polyop::Answer(op, num_inputs, inputs, num_attributes, attributes, outputs,
                        [&](const polyop::GivenCall& call) { return polyop::CallOnGpu(call, *outputs, device); });
}

const char* polyop_read_device(const polyop_device* device, void* to, const void* from, size_t bytes) {
  static thread_local std::string message;
  return polyop::Guarded(
      [&]() -> const char* {
        polyop::Status status = polyop::CheckDevice(device);
        if (status.ok() && bytes > 0) status = polyop::TheGpuMemory().copy(device->stream, to, from, bytes, true);
        if (status.ok()) return nullptr;
        message = status.message();
        return message.c_str();
      },
      [](const char*) -> const char* { return "out of memory, or an internal error"; });
}
