// SPDX-License-Identifier: Apache-2.0
#include "testing/testing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>
#include <utility>

#include "core/call.h"
#include "core/cuda_context.h"
#include "core/device_run.h"
#include "core/elements.h"
#include "core/thread_order.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/thread_pool.h"
#include "testing/gpu.h"

namespace polyop::testing {
namespace {

// Memory accesses do not depend on the order and number of threads, so one run suffices under AddressSanitizer.
#ifdef __SANITIZE_ADDRESS__
constexpr std::array kThreads = {3};
constexpr std::array kOrders = {false};
constexpr int64_t kElementsAfter = 0;
#else
constexpr int64_t kElementsAfter = 16;
constexpr std::array kThreads = {1, 2, 8};
constexpr std::array kOrders = {false, true};
#endif

class OwnedOutputs : public OutputSource {
 public:
  OwnedOutputs(std::vector<HostTensor>* outputs, const RunOptions& options)
      : outputs_(outputs), requested_(options.requested_outputs), max_(options.max_elements) {}
  bool Requested(int index) override { return index < requested_; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    if (outputs_->size() <= static_cast<size_t>(index)) outputs_->resize(static_cast<size_t>(index) + 1);
    HostTensor& tensor = (*outputs_)[static_cast<size_t>(index)];
    if (tensor.present()) return Internal("output ", index, " is allocated twice");
    if (shape.NumElements() > max_) return Internal("output ", index, " is larger than the test allows");
    tensor = HostTensor(dtype, shape);
    *data = tensor.data<char>();
    return Status::Ok();
  }

 private:
  std::vector<HostTensor>* outputs_;
  int requested_;
  int64_t max_;
};

// Outputs in GPU memory, which Download() copies to the host.
class GpuOutputs : public OutputSource {
 public:
  GpuOutputs(OutputSource& final, TestGpu& gpu) : final_(final), gpu_(gpu) {}
  bool Requested(int index) override { return final_.Requested(index); }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    AnyTensor host{nullptr, dtype, true, shape};
    POLYOP_RETURN_IF_ERROR(final_.Allocate(index, dtype, shape, &host.data));
    POLYOP_RETURN_IF_ERROR(gpu_.AllocateFor(host, data));
    outputs_on_gpu_.emplace_back(host, *data);
    return Status::Ok();
  }
  Status Download() {
    for (const auto& [host, there] : outputs_on_gpu_) POLYOP_RETURN_IF_ERROR(gpu_.Download(host, there));
    return Status::Ok();
  }

 private:
  OutputSource& final_;
  TestGpu& gpu_;
  std::vector<std::pair<AnyTensor, void*>> outputs_on_gpu_;
};

Status RunOnGpu(const Op& op, const void* params, std::vector<AnyTensor> inputs, OutputSource& outputs,
                const RunOptions& options) {
  const int64_t max = options.max_elements;
  TestGpu gpu(max > INT64_MAX / 64 ? SIZE_MAX : static_cast<size_t>(max) * 64, options.misaligned);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int index = SpecIndex(*op.signatures[0].signature, i);
    if (!inputs[i].present || op.signatures[0].needs_value(index))
      continue;  // values that determine shapes stay on the host
    POLYOP_RETURN_IF_ERROR(gpu.Upload(AnyTensor(inputs[i]), &inputs[i].data));
  }
  GpuOutputs on_gpu(outputs, gpu);
  POLYOP_RETURN_IF_ERROR(CallOnDevice(op, params, inputs, on_gpu, gpu.backend()));
  return on_gpu.Download();
}

// Compares the CUDA kernel with the reference: emulated on the CPU with blocks and threads in both orders, or twice on
// the GPU in a build with CUDA. Sums of a kernel that adds atomically may have other last bits in the other order.
void ExpectGpuMatches(const Op& op, const void* params, const std::vector<HostTensor>& inputs,
                      const std::vector<HostTensor>& want, const Tolerance& tolerance, int requested_outputs) {
  std::vector<HostTensor> first;
  const bool same_bytes = !SumsInThreadOrder::Marks(op.name);
  for (const bool backwards : kOrders) {
    const std::string what = Concat(op.name, "'s CUDA kernel, ", backwards ? "back" : "for", "wards");
    std::vector<HostTensor> got;
    RunOptions options;
    options.device = GpuDevice();
    options.requested_outputs = requested_outputs;
    TestGpu::RunBackwards(backwards);
    const Status status = RunOp(op, params, inputs, &got, options);
    TestGpu::RunBackwards(false);
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    ASSERT_EQ(got.size(), want.size()) << what;
    if (!backwards) first = got;
    for (size_t o = 0; o < got.size(); ++o) {
      if (same_bytes) {
        EXPECT_TRUE(got[o].SameBytes(first[o])) << what << ": output " << o << " depends on the threads' order";
      }
      const bool real = got[o].present() && IsReal(got[o].dtype());
      if (!backwards || !same_bytes)
        ExpectNear(got[o], want[o], real ? tolerance : Tolerance{0, 0}, Concat(what, ", output ", o));
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

class ListedAttributes : public AttrSource {
 public:
  explicit ListedAttributes(const std::vector<std::pair<std::string, AttrValue>>& items) : items_(items) {}
  bool Get(const char* name, AttrValue* value) override {
    for (const auto& [key, v] : items_) {
      if (key != name) continue;
      *value = v;
      return true;
    }
    return false;
  }

 private:
  const std::vector<std::pair<std::string, AttrValue>>& items_;
};

}  // namespace

HostTensor::HostTensor(DType dtype, const Shape& shape, bool aligned)
    : present_(true), dtype_(dtype), shape_(shape), front_(aligned ? 0 : SizeOf(dtype)) {
  const size_t end = front_ + static_cast<size_t>(size()) * SizeOf(dtype);
  bytes_.assign(end, 0xA5);
  bytes_.resize(end + static_cast<size_t>(kElementsAfter) * SizeOf(dtype), 0);
  for (int64_t i = size(); i < size() + kElementsAfter && IsReal(dtype); ++i) set(i, 7);
}

HostTensor HostTensor::Of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  HostTensor t(dtype, shape);
  EXPECT_EQ(static_cast<size_t>(t.size()), values.size()) << "values for shape " << ToString(shape);
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
  return t;
}

HostTensor HostTensor::Uniform(DType dtype, const Shape& shape, std::mt19937& rng, double low, double high) {
  std::uniform_real_distribution<double> distribution(low, high);
  HostTensor t(dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i) {
    const double v = distribution(rng);
    t.set(i, IsReal(dtype) ? v : std::floor(v));
  }
  return t;
}

HostTensor HostTensor::Full(DType dtype, const Shape& shape, double value) {
  HostTensor t(dtype, shape);
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, value);
  return t;
}

void HostTensor::Keep(const Shape& shape) {
  shape_ = shape;
  bytes_.resize(front_ + static_cast<size_t>(size()) * SizeOf(dtype_));
}

double HostTensor::at(int64_t i) const { return ReadElement(dtype_, data<char>(), i); }

void HostTensor::set(int64_t i, double value) { WriteElement(dtype_, data<char>(), i, value); }

std::vector<double> HostTensor::ToDoubles() const {
  std::vector<double> values(static_cast<size_t>(size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = at(static_cast<int64_t>(i));
  return values;
}

HostTensor HostTensor::Cast(DType dtype) const {
  HostTensor t(dtype, shape_);
  for (int64_t i = 0; i < size(); ++i) t.set(i, at(i));
  return t;
}

AnyTensor HostTensor::view() const { return {const_cast<char*>(data<char>()), dtype_, present_, shape_}; }

bool HostTensor::SameBytes(const HostTensor& other) const {
  if (shape_ != other.shape_ || dtype_ != other.dtype_ || present_ != other.present_) return false;
  const size_t bytes = present_ ? static_cast<size_t>(size()) * SizeOf(dtype_) : 0;
  return std::equal(data<char>(), data<char>() + bytes, other.data<char>());
}

Status RunOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs,
             const RunOptions& options) {
  std::vector<AnyTensor> views;
  for (const HostTensor& t : inputs) views.push_back(t.view());
  outputs->clear();
  OwnedOutputs source(outputs, options);
  if (options.device == GpuDevice()) return RunOnGpu(op, params, views, source, options);
  POLYOP_RETURN_IF_ERROR(ForceIsa(options.isa));
  ThreadPool pool(options.threads);
  const Context context(pool.backend());
  const Status status = Call(op, options.device, params, views, source, &context);
  POLYOP_RETURN_IF_ERROR(ForceIsa(""));
  return status;
}

Tolerance ToleranceFor(DType dtype) {
  switch (dtype) {
    case DType::kF16: return {2e-3, 2e-3};
    case DType::kBF16: return {2e-2, 2e-2};
    default: return {1e-5, 1e-5};
  }
}

void ExpectNear(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance, const std::string& what) {
  ASSERT_EQ(got.present(), want.present()) << what;
  if (!got.present()) return;
  ASSERT_EQ(ToString(got.shape()), ToString(want.shape())) << what;
  int shown = 0;
  for (int64_t i = 0; i < got.size() && shown < 5; ++i) {
    const double g = got.at(i), w = want.at(i);
    const bool same = g == w || (std::isnan(g) && std::isnan(w)) ||
                      std::abs(g - w) <= tolerance.absolute + tolerance.relative * std::abs(w);
    if (same) continue;
    ++shown;
    ADD_FAILURE() << what << ": element " << i << " of shape " << ToString(got.shape()) << ": expected " << w
                  << ", got " << g;
  }
}

Status RunReference(const Op& op, const void* params, const std::vector<HostTensor>& inputs,
                    std::vector<HostTensor>* outputs, int requested_outputs, int64_t max_elements) {
  RunOptions options;
  options.device = Device::kReference;
  options.max_elements = max_elements;
  options.requested_outputs = requested_outputs;
  Status rejected;  // by a kernel for the types
  const auto accepts = [&](const std::vector<HostTensor>& given) {
    Status status = RunOp(op, params, given, outputs, options);
    if (status.ok()) return true;
    std::vector<AnyTensor> views;
    for (const HostTensor& t : given) views.push_back(t.view());
    const Kernel* kernel = nullptr;
    if (rejected.ok() || op.FindKernel(Device::kReference, views, &kernel).ok()) rejected = std::move(status);
    return false;
  };
  // Tries the given types, then other real types, then wider integer types.
  if (accepts(inputs)) return Status::Ok();
  for (const bool widen : {false, true}) {
    for (const Kernel& k : op.kernels) {
      if (k.device != Device::kReference) continue;
      const Signature& s = *op.signatures[k.signature].signature;
      std::vector<HostTensor> wide = inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const int index = std::min(static_cast<int>(i), s.num_inputs() - 1);
        if (!inputs[i].present() || s.input(index).any_dtype) continue;
        const DType from = inputs[i].dtype(), to = k.inputs[index];
        const bool integer = widen && !IsReal(from) && SizeOf(from) <= SizeOf(to);
        if (integer || (IsReal(from) && IsReal(to))) wide[i] = inputs[i].Cast(to);
      }
      if (accepts(wide)) return Status::Ok();
    }
  }
  return rejected;
}

void ExpectMatchesReferenceOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs,
                              const Tolerance& tolerance, int requested_outputs) {
  std::vector<HostTensor> want;
  const Status reference = RunReference(op, params, inputs, &want, requested_outputs);
  ASSERT_TRUE(reference.ok()) << "reference: " << reference.message();
  for (const std::string& isa : AvailableIsas()) {
    std::vector<HostTensor> first;
    for (int threads : kThreads) {
      const std::string what = Concat(op.name, " on ", isa, " with ", threads, " thread(s)");
      std::vector<HostTensor> got;
      const RunOptions options{Device::kCpu, threads, isa, requested_outputs};
      const Status status = RunOp(op, params, inputs, &got, options);
      ASSERT_TRUE(status.ok()) << what << ": " << status.message();
      ASSERT_EQ(got.size(), want.size()) << what;
      if (threads == kThreads.front()) first = got;
      for (size_t o = 0; o < got.size(); ++o) {
        EXPECT_TRUE(got[o].SameBytes(first[o])) << what << ": output " << o << " depends on the threads";
        const bool real = got[o].present() && IsReal(got[o].dtype());
        if (threads == kThreads.front()) {
          ExpectNear(got[o], want[o], real ? tolerance : Tolerance{0, 0}, Concat(what, ", output ", o));
        }
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  if (HasGpuKernels(op)) ExpectGpuMatches(op, params, inputs, want, tolerance, requested_outputs);
}

bool HasGpuKernels(const Op& op) {
  const std::string& missing = TestGpu::Missing();
  static bool said = false;
  if (!missing.empty() && !std::exchange(said, true)) {
    std::cout << "Skipping GPU tests: " << missing << '\n';
    EXPECT_EQ(std::getenv("POLYOP_NEEDS_GPU"), nullptr) << "POLYOP_NEEDS_GPU is set";
  }
  const bool has = std::any_of(op.kernels.begin(), op.kernels.end(),
                               [](const Kernel& kernel) { return kernel.device == GpuDevice(); });
  static std::set<const Op*> said_of;
  if (missing.empty() && !has && said_of.insert(&op).second) {
    std::cout << "Skipping GPU tests of " << op.name << ": it has no GPU kernel in this build\n";
  }
  return missing.empty() && has;
}

Status MakeParams(const Op& op, const std::vector<std::pair<std::string, AttrValue>>& attributes, Params* params,
                  const std::string& node) {
  ListedAttributes source(attributes);
  for (const NodeName& n : op.nodes) {
    if (node.empty() || node == n.name) return op.MakeParams(n, source, params);
  }
  return InvalidArgument("operator ", op.name, " has no node name ", node);
}

void ExpectAttributeError(const Op& op, const std::vector<std::pair<std::string, AttrValue>>& attributes,
                          const std::vector<std::string>& parts) {
  Params params;
  const Status status = MakeParams(op, attributes, &params);
  EXPECT_FALSE(status.ok());
  for (const std::string& part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "message: " << status.message() << "\nlacks:   " << part;
  }
}

}  // namespace polyop::testing
