#include "core/reference.h"

#include <algorithm>
#include <cstdlib>
#include <deque>

#include "core/call.h"
#include "core/context.h"
#include "core/elements.h"

namespace polyop {
namespace {

// The reference kernel of the same signature whose input types are those of `kernel`, or wider real ones.
const Kernel* FindReference(const Op& op, const Kernel& kernel) {
  const Signature& signature = *op.signatures[kernel.signature].signature;
  for (const Kernel& candidate : op.kernels) {
    if (candidate.device != Device::kReference || candidate.signature != kernel.signature) continue;
    bool fits = true;
    for (int i = 0; i < signature.num_inputs(); ++i) {
      const DType wanted = kernel.inputs[i], has = candidate.inputs[i];
      fits &= signature.input(i).any_dtype || wanted == has || (IsReal(wanted) && IsReal(has));
    }
    if (fits) return &candidate;
  }
  return nullptr;
}

struct Owned {
  AnyTensor view;
  std::vector<char> bytes;

  Owned(DType dtype, const Shape& shape) {
    bytes.resize(static_cast<size_t>(shape.NumElements().value_or(0)) * SizeOf(dtype));
    view = {bytes.data(), dtype, true, shape};
  }
};

void Convert(const AnyTensor& from, const AnyTensor& to) {
  const int64_t count = to.shape.NumElements().value_or(0);
  for (int64_t i = 0; i < count; ++i) WriteElement(to.dtype, to.data, i, ReadElement(from.dtype, from.data, i));
}

class WideOutputs : public OutputSource {
 public:
  WideOutputs(OutputSource& narrow, const Kernel& kernel) : narrow_(narrow), kernel_(kernel) {}
  bool Wanted(int index) override { return narrow_.Wanted(index); }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const DType wanted = kernel_.outputs[static_cast<size_t>(index)];
    if (dtype == wanted) return narrow_.Allocate(index, dtype, shape, data);
    AnyTensor target{nullptr, wanted, true, shape};
    POLYOP_RETURN_IF_ERROR(narrow_.Allocate(index, wanted, shape, &target.data));
    pairs_.push_back({Owned(dtype, shape), target});
    *data = pairs_.back().wide.view.data;
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
  std::deque<Pair> pairs_;
};

// Reference kernels run on one thread.
ContextBackend SerialBackend() {
  ContextBackend backend;
  backend.parallel = [](void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
    for (int64_t i = 0; i < tasks; ++i) body(argument, i);
  };
  backend.allocate = [](void*, size_t bytes) -> void* { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); };
  backend.release = [](void*, void* memory) { std::free(memory); };
  return backend;
}

}  // namespace

Status CallReference(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs) {
  PreparedCall call;
  POLYOP_RETURN_IF_ERROR(Prepare(op, Device::kCpu, params, inputs, outputs, &call));
  const Kernel* reference = FindReference(op, *call.kernel);
  if (reference == nullptr) return Unsupported("operator ", op.name, " has no reference kernel for these types");
  const Signature& signature = call.signature();
  std::deque<Owned> wide;
  std::vector<AnyTensor> views(inputs.begin(), inputs.end());
  for (size_t i = 0; i < views.size(); ++i) {
    const int index = SpecIndex(signature, i);
    const DType wanted = reference->inputs[static_cast<size_t>(index)];
    if (!views[i].present || signature.input(index).any_dtype || views[i].dtype == wanted || !IsReal(views[i].dtype)) {
      continue;
    }
    const AnyTensor& widened = wide.emplace_back(wanted, views[i].shape).view;
    Convert(views[i], widened);
    views[i] = widened;
  }
  const ContextBackend backend = SerialBackend();
  const Context context(backend);
  WideOutputs rounded(outputs, *call.kernel);
  POLYOP_RETURN_IF_ERROR(Call(op, Device::kReference, params, views, rounded, &context));
  rounded.Round();
  return Status::Ok();
}

}  // namespace polyop
