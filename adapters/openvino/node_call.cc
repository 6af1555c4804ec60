// SPDX-License-Identifier: Apache-2.0
#include "adapters/openvino/node_call.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>

#include "adapters/openvino/element_types.h"
#include "core/call.h"
#include "core/context.h"
#include "core/reference.h"
#include "platform/memory.h"

namespace polyop::openvino {
namespace {

const ContextBackend& Backend() {
  static const ContextBackend backend = [] {
    ContextBackend b;
    b.parallel = [](void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
      tbb::parallel_for(int64_t{0}, tasks, [=](int64_t i) { body(argument, i); }, tbb::simple_partitioner());
    };
    b.allocate = [](void*, size_t bytes) -> void* { return AllocateAligned(bytes); };
    b.release = [](void*, void* memory) { FreeAligned(memory); };
    return b;
  }();
  return backend;
}

// The inputs as views with the kernel's types.
class Inputs {
 public:
  Status Read(const Op& op, const std::vector<int64_t>& present, const ov::TensorVector& tensors) {
    views_.resize(present.size());
    size_t argument = 0;
    for (size_t i = 0; i < present.size(); ++i) {
      if (present[i] == 0 || argument >= tensors.size()) continue;
      const ov::Tensor& tensor = tensors[argument++];
      const std::optional<DType> dtype = FromOpenVino(tensor.get_element_type());
      if (!dtype)
        return Unsupported("input ", i, ": unsupported element type ", tensor.get_element_type().get_type_name());
      const ov::Shape& shape = tensor.get_shape();
      views_[i].present = true;
      views_[i].dtype = *dtype;
      for (const size_t extent : shape) views_[i].shape.push_back(static_cast<int64_t>(extent));
      views_[i].data = tensor.get_size() > 0 ? const_cast<void*>(tensor.data()) : nullptr;
    }
    while (!views_.empty() && !views_.back().present) views_.pop_back();
    WidenFor(op);
    return Status::Ok();
  }
  const std::vector<AnyTensor>& views() const { return views_; }

 private:
  void WidenFor(const Op& op) {
    std::vector<KnownInput> inputs(views_.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = {views_[i].present, views_[i].dtype, views_[i].shape.rank()};
    }
    const Kernel* const kernel = FindKernel(op, std::move(inputs));
    if (kernel != nullptr) widening_.Apply(op, *kernel, views_);  // otherwise the call reports the error
  }

  std::vector<AnyTensor> views_;
  Widening widening_;
};

class Outputs : public OutputSource {
 public:
  Outputs(ov::TensorVector& tensors, const std::vector<bool>& requested)
      : tensors_(tensors), requested_(requested), wide_(tensors.size()) {}

  bool Requested(int index) override {
    const size_t i = static_cast<size_t>(index);
    return i < requested_.size() && requested_[i];
  }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    ov::Tensor& tensor = tensors_[static_cast<size_t>(index)];
    tensor.set_shape(ov::Shape(shape.begin(), shape.end()));
    const ov::element::Type type = ToOpenVino(dtype);
    if (tensor.get_element_type() == type) {
      *data = tensor.data();
      return Status::Ok();
    }
    if (dtype != DType::kI64 || tensor.get_element_type() != ov::element::i32) {
      return Unsupported("output ", index, ": expected element type ", NameOf(dtype), ", got ",
                         tensor.get_element_type().get_type_name());
    }
    std::vector<int64_t>& wide = wide_[static_cast<size_t>(index)];
    wide.resize(tensor.get_size());
    *data = wide.data();
    return Status::Ok();
  }
  /// Converts outputs that OpenVINO expects as i32.
  void Finish() {
    for (size_t i = 0; i < wide_.size(); ++i) {
      if (wide_[i].empty()) continue;
      auto* const narrow = static_cast<int32_t*>(tensors_[i].data());
      std::transform(wide_[i].begin(), wide_[i].end(), narrow, [](int64_t v) { return static_cast<int32_t>(v); });
    }
  }

 private:
  ov::TensorVector& tensors_;
  const std::vector<bool>& requested_;
  std::vector<std::vector<int64_t>> wide_;
};

}  // namespace

const Kernel* FindKernel(const Op& op, std::vector<KnownInput> inputs) {
  const Kernel* kernel = op.FindKernel(Device::kCpu, inputs);
  std::vector<KnownInput> any = inputs;
  // The plugin converts i64 to i32 and bool to u8. Operators may also have kernels for u8.
  for (const auto& [narrow, wide] : {std::pair(DType::kI32, DType::kI64), std::pair(DType::kU8, DType::kBool)}) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].dtype != narrow) continue;
      inputs[i].dtype = wide;
      any[i].dtype.reset();
    }
    if (kernel == nullptr) kernel = op.FindKernel(Device::kCpu, inputs);
  }
  return kernel != nullptr ? kernel : op.FindKernel(Device::kCpu, any);
}

void Widening::Apply(const Op& op, const Kernel& kernel, std::span<AnyTensor> inputs) {
  const Signature& signature = *op.signatures[static_cast<size_t>(kernel.signature)].signature;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t slot = std::min(i, static_cast<size_t>(signature.num_inputs()) - 1);
    if (inputs[i].present && !signature.input(static_cast<int>(slot)).any_dtype) Apply(kernel.inputs[slot], &inputs[i]);
  }
}

void Widening::Apply(DType target, AnyTensor* input) {
  if (target == DType::kBool && input->dtype == DType::kU8) input->dtype = DType::kBool;
  if (target != DType::kI64 || input->dtype != DType::kI32) return;
  input->dtype = DType::kI64;
  if (input->data == nullptr) return;
  const auto* const narrow = static_cast<const int32_t*>(input->data);
  input->data = copies_.emplace_back(narrow, narrow + input->shape.NumElements().value_or(0)).data();
}

Status CallNode(const Op& op, const void* params, const std::vector<int64_t>& present, const ov::TensorVector& inputs,
                const std::vector<bool>& requested, ov::TensorVector& outputs) {
  Inputs read;
  POLYOP_RETURN_IF_ERROR(read.Read(op, present, inputs));
  Outputs source(outputs, requested);
  const Context context(Backend());
  POLYOP_RETURN_IF_ERROR(ReferenceRequested() ? CallReference(op, params, read.views(), source)
                                              : Call(op, Device::kCpu, params, read.views(), source, &context));
  source.Finish();
  return Status::Ok();
}

}  // namespace polyop::openvino
