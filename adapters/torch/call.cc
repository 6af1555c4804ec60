// SPDX-License-Identifier: Apache-2.0
#include "adapters/torch/call.h"

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "adapters/shapes.h"
#include "adapters/torch/arguments.h"
#include "adapters/torch/cuda_stream.h"
#include "core/call.h"
#include "core/context.h"
#include "core/device_run.h"
#include "core/library.h"
#include "core/reference.h"
#include "platform/memory.h"

namespace polyop::torch_adapter {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

[[noreturn]] void Fail(const Op& op, const std::string& message) {
  throw std::runtime_error(Concat(LibraryName(), "::", op.name, ": ", message));
}

std::optional<DType> FromTorch(ScalarType type) {
  switch (type) {
    case ScalarType::Float: return DType::kF32;
    case ScalarType::Half: return DType::kF16;
    case ScalarType::BFloat16: return DType::kBF16;
    case ScalarType::Double: return DType::kF64;
    case ScalarType::Char: return DType::kI8;
    case ScalarType::Byte: return DType::kU8;
    case ScalarType::Short: return DType::kI16;
    case ScalarType::Int: return DType::kI32;
    case ScalarType::Long: return DType::kI64;
    case ScalarType::Bool: return DType::kBool;
    default: return std::nullopt;
  }
}

ScalarType ToTorch(DType dtype) {
  switch (dtype) {
    case DType::kF32: return ScalarType::Float;
    case DType::kF16: return ScalarType::Half;
    case DType::kBF16: return ScalarType::BFloat16;
    case DType::kF64: return ScalarType::Double;
    case DType::kI8: return ScalarType::Char;
    case DType::kU8: return ScalarType::Byte;
    case DType::kI16: return ScalarType::Short;
    case DType::kI32: return ScalarType::Int;
    case DType::kI64: return ScalarType::Long;
    case DType::kBool: break;
  }
  return ScalarType::Bool;
}

// Returns the name of a device, as PyTorch writes it. No device is the CPU.
std::string DeviceName(const std::optional<torch::stable::Device>& device) {
  if (!device || device->is_cpu()) return "cpu";
  return Concat(device->is_cuda() ? "cuda:" : "device ", static_cast<int>(device->index()));
}

// The backend of a CPU kernel's context: PyTorch's threads and system memory.
const ContextBackend& Backend() {
  static const ContextBackend backend = [] {
    ContextBackend b;
    b.parallel = [](void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
      torch::stable::parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(argument, i);
      });
    };
    b.allocate = [](void*, size_t bytes) -> void* { return AllocateAligned(bytes); };
    b.release = [](void*, void* memory) { FreeAligned(memory); };
    return b;
  }();
  return backend;
}

class TorchOutputs : public OutputSource {
 public:
  explicit TorchOutputs(std::optional<torch::stable::Device> device) : device_(device) {}
  bool Requested(int) override { return true; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const std::vector<int64_t> sizes(shape.begin(), shape.end());
    const size_t i = static_cast<size_t>(index);
    if (tensors_.size() <= i) tensors_.resize(i + 1);
    tensors_[i] = torch::stable::empty(sizes, ToTorch(dtype), std::nullopt, device_);
    *data = tensors_[i]->mutable_data_ptr();
    return Status::Ok();
  }
  std::vector<std::optional<Tensor>>& tensors() { return tensors_; }

 private:
  std::optional<torch::stable::Device> device_;
  std::vector<std::optional<Tensor>> tensors_;
};

// Outputs in tensors of the caller.
class GivenOutputs : public OutputSource {
 public:
  GivenOutputs(const Op& op, std::vector<Tensor> given, const std::vector<AnyTensor>& inputs,
               std::optional<torch::stable::Device> device)
      : signature_(*op.signatures[0].signature), given_(std::move(given)), used_(inputs), device_(device) {}
  bool Requested(int) override { return true; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const Tensor& t = given_[static_cast<size_t>(index)];
    const std::string name = "output '" + std::string(signature_.output(index).name) + "'";
    const bool same_device = device_ ? t.is_cuda() && t.device().index() == device_->index() : t.is_cpu();
    if (!same_device) {
      return InvalidArgument(name, ": expected ", DeviceName(device_), ", the device of the inputs, got ",
                             DeviceName(t.device()));
    }
    const std::optional<DType> type = FromTorch(t.scalar_type());
    if (type != dtype) {
      return InvalidArgument(name, ": expected type ", NameOf(dtype), ", got ",
                             type ? NameOf(*type) : "an unsupported type");
    }
    const auto sizes = t.sizes();
    const Shape got(std::span<const int64_t>(sizes.data(), sizes.size()));
    if (!std::ranges::equal(got.span(), shape.span())) {
      return InvalidArgument(name, ": expected shape ", ToString(shape), ", got ", ToString(got));
    }
    if (!t.is_contiguous()) return InvalidArgument(name, ": expected a contiguous tensor");
    *data = t.mutable_data_ptr();
    const AnyTensor output{*data, dtype, true, shape};
    if (std::ranges::any_of(used_, [&](const AnyTensor& other) { return Overlap(output, other); })) {
      return InvalidArgument(name, ": expected memory that no input and no other output uses");
    }
    used_.push_back(output);
    return Status::Ok();
  }

 private:
  // Returns whether two contiguous tensors share memory.
  static bool Overlap(const AnyTensor& a, const AnyTensor& b) {
    const auto begin = [](const AnyTensor& t) { return reinterpret_cast<uintptr_t>(t.data); };
    const auto bytes = [](const AnyTensor& t) {
      return t.present ? static_cast<size_t>(t.shape.NumElements().value_or(0)) * SizeOf(t.dtype) : 0;
    };
    return begin(a) < begin(b) + bytes(b) && begin(b) < begin(a) + bytes(a) && bytes(a) > 0 && bytes(b) > 0;
  }

  const Signature& signature_;
  std::vector<Tensor> given_;
  std::vector<AnyTensor> used_;  // the inputs, and the outputs before this one
  std::optional<torch::stable::Device> device_;
};

#if POLYOP_CUDA
// The backend of a CUDA kernel's call: PyTorch's current stream and caching allocator. Memory that is freed when the
// call returns may be reused only on this stream, after the call's work.
class CurrentStream {
 public:
  explicit CurrentStream(torch::stable::Device device) : device_(device), guard_(device.index()) {
    backend_.self = this;
    backend_.allocate = [](void* self, size_t bytes) -> void* {
      auto& stream = *static_cast<CurrentStream*>(self);
      const std::vector<int64_t> sizes = {static_cast<int64_t>(bytes)};
      stream.memory_.push_back(torch::stable::empty(sizes, ScalarType::Byte, std::nullopt, stream.device_));
      return stream.memory_.back().mutable_data_ptr();
    };
    const Status status = CurrentCudaStream(device.index(), &backend_.stream);
    if (!status.ok()) throw std::runtime_error("polyop: " + status.message());
  }
  const DeviceBackend& backend() const { return backend_; }

 private:
  torch::stable::Device device_;
  torch::stable::accelerator::DeviceGuard guard_;
  std::deque<Tensor> memory_;
  DeviceBackend backend_;
};
#endif

// Reads the inputs as views. Owns contiguous copies.
class InputReader {
 public:
  InputReader(const Op& op, const std::vector<std::optional<Tensor>>& inputs) : op_(op) {
    const Signature& signature = *op.signatures[0].signature;
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] ? Add(SpecOf(signature, i), *inputs[i]) : views_.push_back({});
    }
    while (!views_.empty() && !views_.back().present) views_.pop_back();
  }
  const std::vector<AnyTensor>& views() const { return views_; }
  /// Returns the GPU of the inputs, or nullopt.
  const std::optional<torch::stable::Device>& device() const { return device_; }

 private:
  // Inputs whose values determine a shape are copied to the host.
  void Add(const TensorSpec& spec, const Tensor& tensor) {
    const std::string name = "'" + std::string(spec.name) + "'";
    const bool on_host = op_.signatures[0].needs_value(static_cast<int>(views_.size()));
    const Tensor given = on_host && !tensor.is_cpu()
                             ? torch::stable::to(tensor, torch::stable::Device(torch::headeronly::DeviceType::CPU))
                             : tensor;
    if (!given.is_cpu()) {
      if (!POLYOP_CUDA) Fail(op_, name + ": expected a CPU tensor, since polyop was built without CUDA");
      if (!given.is_cuda()) Fail(op_, name + ": expected a CPU or CUDA tensor");
    }
    if (!on_host) {
      const bool first = views_.empty() || (!device_ && !host_);
      const bool same = given.is_cpu() ? !device_ : !host_ && (!device_ || device_->index() == given.device().index());
      if (!first && !same) {
        Fail(op_, Concat(name, ": expected ", DeviceName(device_), ", the device of the inputs before it, got ",
                         DeviceName(given.device())));
      }
      if (given.is_cpu()) host_ = true;
      if (!given.is_cpu()) device_ = given.device();
    }
    const Tensor& t = kept_.emplace_back(given.is_contiguous() ? given : torch::stable::contiguous(given));
    const std::optional<DType> dtype = FromTorch(t.scalar_type());
    if (!dtype) Fail(op_, Concat("'", spec.name, "': unsupported element type"));
    const auto sizes = t.sizes();
    AnyTensor view{const_cast<void*>(t.const_data_ptr()), *dtype, true, {}};  // inputs are only read
    for (int64_t d : sizes) view.shape.push_back(d);
    views_.push_back(view);
  }

  const Op& op_;
  std::deque<Tensor> kept_;
  std::vector<AnyTensor> views_;
  std::optional<torch::stable::Device> device_;
  bool host_ = false;
};

class CallAttributes : public AttrSource {
 public:
  CallAttributes(const Op& op, const std::vector<std::optional<AttrValue>>& values) : op_(op), values_(values) {}
  bool Get(const char* name, AttrValue* value) override {
    for (size_t i = 0; i < op_.attributes.size(); ++i) {
      if (std::strcmp(op_.attributes[i].spec.name, name) != 0) continue;
      if (values_[i]) *value = *values_[i];
      return values_[i].has_value();
    }
    return false;
  }

 private:
  const Op& op_;
  const std::vector<std::optional<AttrValue>>& values_;
};

// Puts the outputs on PyTorch's stack. An output that was not computed is a tensor of no elements, of the first input's
// type.
void Return(const Op& op, const InputReader& inputs, TorchOutputs& outputs,
            const std::optional<torch::stable::Device>& device, StableIValue* stack) {
  std::vector<std::optional<Tensor>>& tensors = outputs.tensors();
  tensors.resize(static_cast<size_t>(op.signatures[0].signature->num_outputs()));
  for (size_t o = 0; o < tensors.size(); ++o) {
    if (!tensors[o]) {
      tensors[o] = torch::stable::empty({0}, ToTorch(inputs.views()[0].dtype), std::nullopt, device);
    }
    stack[o] = torch::stable::detail::from(*tensors[o]);
  }
}

Status CallWith(const Op& op, const void* params, const InputReader& inputs, OutputSource& outputs) {
#if POLYOP_CUDA
  if (inputs.device()) {
    const CurrentStream stream(*inputs.device());
    return CallOnDevice(op, params, inputs.views(), outputs, stream.backend());
  }
#endif
  const Context context(Backend());
  return Call(op, DeviceFor(op, Device::kCpu, inputs.views()), params, inputs.views(), outputs, &context);
}

// Reads and checks the attributes and runs the operator.
void Run(const Op& op, const Arguments& arguments, const InputReader& inputs, OutputSource& outputs) {
  CallAttributes attributes(op, arguments.attributes);
  Params params;
  Status status = op.MakeParams(NodeName(), attributes, &params);
  if (status.ok()) status = CallWith(op, params.get(), inputs, outputs);
  if (!status.ok()) Fail(op, status.message());
}

// Copies the tensors of a call on a GPU to the host, computes there, and copies the outputs back.
void RunOnHost(const Op& op, Arguments arguments, const torch::stable::Device& gpu, StableIValue* stack) {
  const torch::stable::Device host(torch::headeronly::DeviceType::CPU);
  for (std::optional<Tensor>& input : arguments.inputs) {
    if (input) input = torch::stable::to(*input, host);
  }
  const InputReader inputs(op, arguments.inputs);
  TorchOutputs outputs(std::nullopt);
  Run(op, arguments, inputs, outputs);
  for (std::optional<Tensor>& output : outputs.tensors()) {
    if (output) output = torch::stable::to(*output, gpu);
  }
  Return(op, inputs, outputs, gpu, stack);
}

void CallTaken(const Op& op, StableIValue* stack) {
  Arguments arguments = TakeArguments(op, stack);
  const InputReader inputs(op, arguments.inputs);
  if (inputs.device() && DeviceFor(op, Device::kCuda, inputs.views()) == Device::kReference) {
    return RunOnHost(op, std::move(arguments), *inputs.device(), stack);
  }
  TorchOutputs outputs(inputs.device());
  Run(op, arguments, inputs, outputs);
  Return(op, inputs, outputs, inputs.device(), stack);
}

void CallTakenInto(const Op& op, StableIValue* stack) {
  const Arguments arguments = TakeArguments(op, stack);
  const Signature& signature = *op.signatures[0].signature;
  std::vector<Tensor> given;
  given.reserve(signature.num_outputs());
  const StableIValue* const rest = stack + signature.num_inputs() + op.attributes.size();
  for (int o = 0; o < signature.num_outputs(); ++o) given.push_back(torch::stable::detail::to<Tensor>(rest[o]));
  const InputReader inputs(op, arguments.inputs);
  GivenOutputs outputs(op, std::move(given), inputs.views(), inputs.device());
  Run(op, arguments, inputs, outputs);
}

// Calls `call` and returns its error, or null. The text lives until the thread's next call. Not inlined, because
// PyTorch's exceptions pass through the callers' frames: a frame that catches would involve this library's C++ runtime.
[[gnu::noinline]] const char* Try(void (*call)(const Op&, StableIValue*), const Op& op, StableIValue* stack) {
  static thread_local std::string message;
  try {
    call(op, stack);
    return nullptr;
  } catch (const std::exception& error) {
    message = error.what();
    return message.c_str();
  }
}

}  // namespace

// PyTorch throws the exception, not this library, so the two need not share a C++ runtime. These functions have no
// objects with destructors, which the exception would have to run.
void CallOperator(const Op& op, StableIValue* stack) {
  const char* message = Try(&CallTaken, op, stack);
  if (message != nullptr) aoti_torch_check(false, "CallOperator", __FILE__, __LINE__, message);
}

void CallOperatorInto(const Op& op, StableIValue* stack) {
  const char* message = Try(&CallTakenInto, op, stack);
  if (message != nullptr) aoti_torch_check(false, "CallOperatorInto", __FILE__, __LINE__, message);
}

}  // namespace polyop::torch_adapter
