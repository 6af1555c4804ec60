// SPDX-License-Identifier: Apache-2.0
// Measures the scratch of CUDA kernels. Does not include CUDA's headers.
#include "core/cuda_context.h"

#include "core/call.h"

namespace polyop {
namespace {

// Outputs without memory, for measuring scratch.
class NoOutputs : public OutputSource {
 public:
  bool Requested(int) override { return true; }
  Status Allocate(int, DType, const Shape&, void** data) override {
    *data = nullptr;
    return Status::Ok();
  }
  Status AllocateUpperBound(int, DType, const Shape&, void** data, int64_t** count) override {
    *data = nullptr;
    *count = nullptr;
    return Status::Ok();
  }
};

}  // namespace

Device GpuDevice() {
  static const bool cuda = [] {
    for (const Op* op : AllOps()) {
      for (const Kernel& kernel : op->kernels) {
        if (kernel.device == Device::kCuda) return true;
      }
    }
    return false;
  }();
  return cuda ? Device::kCuda : Device::kCudaEmulated;
}

Status MeasureScratch(const PreparedCall& call, std::span<const AnyTensor> inputs, size_t* bytes) {
  *bytes = 0;
  NoOutputs none;
  const CudaContext context = CudaContext::Measuring();
  POLYOP_RETURN_IF_ERROR(Run(call, inputs, none, &context));
  *bytes = context.used();
  return Status::Ok();
}

}  // namespace polyop
