// SPDX-License-Identifier: Apache-2.0
#include "core/reference.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/call.h"
#include "core/context.h"
#include "core/elements.h"
#include "platform/memory.h"

namespace polyop {
namespace {

// The conversions of inputs that a search for a reference kernel accepts.
enum class Widening { kNone, kReal, kAll };

// Returns true if a tensor of type `type` can be converted to the reference kernel's type `reference`.
bool CanWiden(DType reference, DType type, Widening widening) {
  if (reference == type) return true;
  if (widening == Widening::kNone || IsReal(reference) != IsReal(type)) return false;
  return IsReal(reference) || (widening == Widening::kAll && SizeOf(type) < SizeOf(reference));
}

// Returns the reference kernel of the same signature whose input types are those of `kernel` or wider; null if none.
const Kernel* FindReference(const Op& op, const Kernel& kernel) {
  const Signature& signature = *op.signatures[static_cast<size_t>(kernel.signature)].signature;
  for (const Widening widening : {Widening::kNone, Widening::kReal, Widening::kAll}) {
    for (const Kernel& candidate : op.kernels) {
      if (candidate.device != Device::kReference || candidate.signature != kernel.signature) continue;
      bool fits = true;
      for (int i = 0; i < signature.num_inputs(); ++i) {
        const size_t at = static_cast<size_t>(i);
        fits &= signature.input(i).any_dtype || CanWiden(candidate.inputs[at], kernel.inputs[at], widening);
      }
      if (fits) return &candidate;
    }
  }
  return nullptr;
}

struct Owned {
  AnyTensor view;
  std::unique_ptr<char[]> bytes;

  static Status Make(DType dtype, const Shape& shape, Owned* owned) {
    const size_t count = static_cast<size_t>(shape.NumElements().value_or(0));
    owned->bytes.reset(new (std::nothrow) char[count * SizeOf(dtype)]());
    owned->view = {owned->bytes.get(), dtype, true, shape};
    if (owned->bytes == nullptr) return Internal("out of memory for a copy of ", NameOf(dtype), ToString(shape));
    return Status::Ok();
  }
};

void Convert(const AnyTensor& from, const AnyTensor& to) {
  const int64_t count = to.shape.NumElements().value_or(0);
  for (int64_t i = 0; i < count; ++i) WriteElement(to.dtype, to.data, i, ReadElement(from.dtype, from.data, i));
}

class WideOutputs : public OutputSource {
 public:
  WideOutputs(OutputSource& narrow, const Kernel& kernel) : narrow_(narrow), kernel_(kernel) {}
  bool Requested(int index) override { return narrow_.Requested(index); }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const DType target_type = kernel_.outputs[static_cast<size_t>(index)];
    if (dtype == target_type) return narrow_.Allocate(index, dtype, shape, data);
    AnyTensor target{nullptr, target_type, true, shape};
    POLYOP_RETURN_IF_ERROR(narrow_.Allocate(index, target_type, shape, &target.data));
    Owned wide;
    POLYOP_RETURN_IF_ERROR(Owned::Make(dtype, shape, &wide));
    *data = wide.view.data;
    pairs_.push_back({std::move(wide), target});
    return Status::Ok();
  }
  void Round() const {
    for (const auto& [wide, target] : pairs_) Convert(wide.view, target);
  }

 private:
  struct Pair {
    Owned wide;
    AnyTensor target;
  };
  OutputSource& narrow_;
  const Kernel& kernel_;
  std::vector<Pair> pairs_;
};

}  // namespace

ContextBackend SerialBackend() {
  ContextBackend backend;
  backend.parallel = [](void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
    for (int64_t i = 0; i < tasks; ++i) body(argument, i);
  };
  backend.allocate = [](void*, size_t bytes) -> void* { return AllocateAligned(bytes); };
  backend.release = [](void*, void* memory) { FreeAligned(memory); };
  return backend;
}

Status CallReference(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs) {
  PreparedCall call;
  POLYOP_RETURN_IF_ERROR(Prepare(op, Device::kCpu, params, inputs, outputs, &call));
  const Kernel* reference = FindReference(op, *call.kernel);
  if (reference == nullptr) return Unsupported("operator ", op.name, " has no reference kernel for these types");
  const Signature& signature = call.signature();
  std::vector<Owned> wide;
  std::vector<AnyTensor> views(inputs.begin(), inputs.end());
  for (size_t i = 0; i < views.size(); ++i) {
    const int index = SpecIndex(signature, i);
    const DType type = reference->inputs[static_cast<size_t>(index)];
    if (!views[i].present || signature.input(index).any_dtype || views[i].dtype == type) continue;
    Owned& owned = wide.emplace_back();
    POLYOP_RETURN_IF_ERROR(Owned::Make(type, views[i].shape, &owned));
    Convert(views[i], owned.view);
    views[i] = owned.view;
  }
  const ContextBackend backend = SerialBackend();
  const Context context(backend);
  WideOutputs rounded(outputs, *call.kernel);
  POLYOP_RETURN_IF_ERROR(Call(op, Device::kReference, params, views, rounded, &context));
  rounded.Round();
  return Status::Ok();
}

namespace {

const std::string& RequestedKernels() {
  static const std::string requested = [] {
    const char* const kernels = std::getenv("POLYOP_KERNELS");
    return std::string(kernels == nullptr ? "" : kernels);
  }();
  return requested;
}

}  // namespace

bool ReferenceRequested() { return RequestedKernels() == "reference"; }

Status CheckKernelRequest() {
  if (RequestedKernels().empty() || ReferenceRequested()) return Status::Ok();
  return InvalidArgument("POLYOP_KERNELS: expected 'reference' or nothing, got '", RequestedKernels(), "'");
}

}  // namespace polyop
