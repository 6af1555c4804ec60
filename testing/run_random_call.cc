// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/call.h"
#include "core/cuda_context.h"
#include "core/reference.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/thread_pool.h"
#include "testing/against_reference.h"
#include "testing/random_call.h"

namespace polyop::testing {
namespace {

// Outputs of bounded size; larger ones fail to allocate, as in a runtime that is out of memory.
class BoundedOutputs : public OutputSource {
 public:
  explicit BoundedOutputs(const RandomCall& call) : optional_(call.optional_outputs), aligned_(!call.kind.misaligned) {}
  bool Requested(int) override { return optional_; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const std::optional<int64_t> count = shape.NumElements();
    if (!count) {
      wrong_ = Concat("output ", index, " was requested with shape ", ToString(shape));
      return Internal(wrong_);
    }
    if (*count > kMaxOutputElements) return Internal("output ", index, " is larger than the test allows");
    if (outputs_.size() <= static_cast<size_t>(index)) outputs_.resize(static_cast<size_t>(index) + 1);
    HostTensor& t = outputs_[static_cast<size_t>(index)];
    if (t.present()) wrong_ = Concat("output ", index, " is allocated twice");
    t = HostTensor(dtype, shape, aligned_);
    *data = t.data<char>();
    return Status::Ok();
  }
  std::vector<HostTensor>& outputs() { return outputs_; }
  const std::string& wrong() const { return wrong_; }

 private:
  bool optional_, aligned_;
  std::vector<HostTensor> outputs_;
  std::string wrong_;
};

// Larger scratch fails to allocate; AddressSanitizer would end the program.
constexpr size_t kMaxScratch = size_t{1} << 39;

// The threads of a pool, and scratch that is aligned to exactly 64 bytes, has the exact size and contains garbage.
class TightMemory {
 public:
  explicit TightMemory(const ContextBackend& pool) : pool_(pool) {
    backend_.self = this;
    backend_.parallel = [](void* self, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
      const ContextBackend& threads = static_cast<TightMemory*>(self)->pool_;
      threads.parallel(threads.self, tasks, body, argument);
    };
    backend_.allocate = [](void*, size_t bytes) -> void* {
      void* const memory = bytes > kMaxScratch ? nullptr : operator new(bytes + 64, kAlignment, std::nothrow);
      if (memory == nullptr) return nullptr;
      std::memset(memory, 0xA5, bytes + 64);
      return static_cast<char*>(memory) + 64;
    };
    backend_.release = [](void*, void* memory) { operator delete(static_cast<char*>(memory) - 64, kAlignment); };
  }
  const ContextBackend& backend() const { return backend_; }

 private:
  static constexpr std::align_val_t kAlignment{128};
  const ContextBackend& pool_;
  ContextBackend backend_;
};

struct Result {
  Status status;
  std::vector<HostTensor> outputs;
  std::string wrong;
};

Result RunOnCpu(const RandomCall& call, const std::vector<AnyTensor>& views, int threads) {
  ThreadPool pool(threads);
  const TightMemory memory(pool.backend());
  const Context context(memory.backend());
  BoundedOutputs outputs(call);
  Result result;
  result.status = Call(*call.op, Device::kCpu, call.params.get(), views, outputs, &context);
  result.outputs = std::move(outputs.outputs());
  result.wrong = outputs.wrong();
  if (!result.status.ok() && result.status.message().empty()) result.wrong = "an error without a message";
  return result;
}

std::vector<AnyTensor> ViewsOf(const std::vector<HostTensor>& inputs) {
  std::vector<AnyTensor> views;
  for (const HostTensor& t : inputs) views.push_back(t.view());
  return views;
}

// Returns the difference between the results with one thread and with several.
std::string DifferenceOfThreads(const RandomCall& call, const Kernel& kernel, const Result& one,
                                const Result& several) {
  if (one.status.message() != several.status.message()) {
    return Concat("the error depends on the threads: '", one.status.message(), "' and '", several.status.message(),
                  "'");
  }
  const Signature& s = *call.op->signatures[kernel.signature].signature;
  for (size_t o = 0; one.status.ok() && o < static_cast<size_t>(s.num_outputs()); ++o) {
    const bool expected = !s.output(static_cast<int>(o)).optional ||
                          (call.optional_outputs && call.op->Computes(call.params.get(), static_cast<int>(o)));
    const bool present = o < one.outputs.size() && one.outputs[o].present();
    if (present != expected) return Concat("output ", o, expected ? " is missing" : " was not requested");
    if (present && !one.outputs[o].SameBytes(several.outputs[o]))
      return Concat("output ", o, " depends on the threads");
  }
  return "";
}

// Returns the elements [first, first + 1) along the first dimension.
HostTensor ItemOf(const HostTensor& t, int64_t first) {
  Shape shape = t.shape();
  const int64_t size = shape[0] == 0 ? 0 : t.size() / shape[0];
  shape[0] = 1;
  HostTensor item(t.dtype(), shape);
  const size_t bytes = static_cast<size_t>(size) * SizeOf(t.dtype());
  if (bytes > 0) std::memcpy(item.data<char>(), t.data<char>() + static_cast<size_t>(first) * bytes, bytes);
  return item;
}

// Returns the first element of an item that differs from the same one among others, or -1.
int64_t DifferingElement(const HostTensor& item, const HostTensor& among, int64_t index) {
  const HostTensor expected = ItemOf(among, index);
  if (item.shape() != expected.shape()) return 0;
  if (item.SameBytes(expected)) return -1;
  const size_t size = SizeOf(item.dtype());
  for (int64_t e = 0; e < item.size(); ++e) {
    if (std::isnan(item.at(e)) && std::isnan(expected.at(e))) continue;
    const size_t at = static_cast<size_t>(e) * size;
    if (std::memcmp(item.data<char>() + at, expected.data<char>() + at, size) != 0) return e;
  }
  return -1;
}

// DifferenceOfItems along one name, on the selected instruction set.
std::string DifferenceAlong(const RandomCall& call, const Signature& s, int name, int* compared) {
  const auto has_items = [&](size_t input) {
    const TensorSpec& spec = SpecOf(s, input);
    if (!IsBatch(s, spec, name) || !call.inputs[input].present()) return false;
    const bool is_group = spec.dims[0].kind == DimSpec::Kind::kRest;
    return !is_group || call.inputs[input].shape().rank() >= spec.rank;  // the group has a dimension
  };
  int64_t count = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!has_items(i)) continue;
    const int64_t here = call.inputs[i].shape()[0];
    if (count > 0 && here != count) return "";
    count = here;
  }
  if (count < 2) return "";
  const Result all = RunOnCpu(call, ViewsOf(call.inputs), 1);
  if (!all.status.ok()) return "";
  for (const int64_t index : {int64_t{0}, count / 2, count - 1}) {
    std::vector<HostTensor> inputs = call.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (has_items(i)) inputs[i] = ItemOf(inputs[i], index);
    }
    const Result one = RunOnCpu(call, ViewsOf(inputs), 1);
    const std::string subject = Concat("item ", index, " of ", count, " along ", s.name(name).text, ": ");
    if (!one.status.ok()) return subject + "alone it is an error: " + one.status.message();
    ++*compared;
    for (size_t o = 0; o < all.outputs.size(); ++o) {
      if (!all.outputs[o].present()) continue;
      const HostTensor& alone = one.outputs[o];
      const int64_t e = DifferingElement(alone, all.outputs[o], index);
      if (e < 0) continue;
      return Concat(subject, "output ", o, " element ", e, " is ", ItemOf(all.outputs[o], index).at(e), ", alone ",
                    alone.at(e));
    }
  }
  return "";
}

// Returns a failure unless the reference rejects the call with the CPU kernel's error.
std::string DifferenceOfErrors(const RandomCall& call, const std::vector<AnyTensor>& views, const Status& error) {
  const bool has_reference = std::any_of(call.op->kernels.begin(), call.op->kernels.end(),
                                         [](const Kernel& k) { return k.device == Device::kReference; });
  if (!has_reference) return "";
  BoundedOutputs outputs(call);
  const Status status = CallReference(*call.op, call.params.get(), views, outputs);
  if (status.message() == error.message()) return "";
  return Concat("expected the kernel's error '", error.message(), "' from the reference, got ",
                status.ok() ? "success" : "'" + status.message() + "'");
}

// Runs the CUDA kernel, or its emulation, and returns a failure or an empty text. It must accept the calls that the CPU
// kernel accepts. Values that the CPU kernel rejects, such as an index out of range, are not checked on a GPU, but must
// not cause accesses out of bounds. `reference` is null for a call that the CPU kernel rejects.
std::string RunOnGpu(const RandomCall& call, AgainstReference* reference) {
  if (!HasGpuKernels(*call.op)) return "";
  RunOptions options;
  options.device = GpuDevice();
  options.requested_outputs = call.optional_outputs ? 99 : 0;
  options.max_elements = kMaxOutputElements;
  for (const HostTensor& t : call.inputs) {
    if (t.present()) options.max_elements = std::max(options.max_elements, t.size());
  }
  options.misaligned = call.kind.misaligned;
  std::vector<HostTensor> outputs;
  const Status status = RunOp(*call.op, call.params.get(), call.inputs, &outputs, options);
  if (reference == nullptr) return "";
  if (!status.ok()) return "the CUDA kernel rejects a call that the CPU kernel accepts: " + status.message();
  const std::string difference = reference->Difference(outputs);
  return difference.empty() ? "" : "the CUDA kernel: " + difference;
}

}  // namespace

Status RunOnce(const RandomCall& call, std::vector<HostTensor>* outputs) {
  const std::vector<AnyTensor> views = ViewsOf(call.inputs);
  Result result = RunOnCpu(call, views, 1);
  if (result.status.ok()) *outputs = std::move(result.outputs);
  return result.status;
}

std::string DifferenceOfItems(const RandomCall& call, int* compared) {
  const Kernel* kernel = nullptr;
  if (!call.op->FindKernel(Device::kCpu, ViewsOf(call.inputs), &kernel).ok()) return "";
  const Signature& s = *call.op->signatures[static_cast<size_t>(kernel->signature)].signature;
  std::string wrong;
  for (const int name : BatchNames(s)) {
    for (const std::string& isa : AvailableIsas()) {
      if (!wrong.empty() || !ForceIsa(isa).ok()) break;
      wrong = DifferenceAlong(call, s, name, compared);
      if (!wrong.empty()) wrong += " (on " + isa + ")";
    }
  }
  (void)ForceIsa("");
  return wrong;
}

std::string RunRandomCall(const RandomCall& call, Outcome* outcome) {
  *outcome = {};
  const std::vector<AnyTensor> views = ViewsOf(call.inputs);
  const Kernel* kernel = nullptr;
  const Status found = call.op->FindKernel(Device::kCpu, views, &kernel);
  if (!found.ok()) {
    outcome->error = found.message();
    return found.message().empty() ? "an error without a message" : "";
  }
  std::optional<AgainstReference> reference;  // only for accepted calls
  std::string wrong;
  Status first;
  for (const std::string& isa : AvailableIsas()) {
    if (!ForceIsa(isa).ok()) return "instruction set " + isa + " cannot be selected";
    const Result one = RunOnCpu(call, views, 1), several = RunOnCpu(call, views, 3);
    wrong = !one.wrong.empty() ? one.wrong : several.wrong;
    if (wrong.empty()) wrong = DifferenceOfThreads(call, *kernel, one, several);
    if (isa == AvailableIsas().front()) {
      first = one.status;
      if (first.ok()) reference.emplace(call);
      outcome->error = first.message();
    } else if (wrong.empty() && first.message() != one.status.message()) {
      wrong = Concat("the error depends on the instruction set: '", first.message(), "' before");
    }
    if (wrong.empty() && one.status.ok()) wrong = reference->Difference(one.outputs);
    if (!wrong.empty()) {
      wrong += " (on " + isa + ")";
      break;
    }
  }
  (void)ForceIsa("");
  if (!wrong.empty()) return wrong;
  if (!first.ok()) wrong = DifferenceOfErrors(call, views, first);
  if (!wrong.empty()) return wrong;
  wrong = RunOnGpu(call, reference ? &*reference : nullptr);
  outcome->compared = reference && reference->compares();
  outcome->excused = reference && reference->excused();
  return wrong;
}

}  // namespace polyop::testing
