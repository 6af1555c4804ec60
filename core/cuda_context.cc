#include "core/cuda_context.h"

namespace polyop {
namespace {

// Outputs that exist in shape only.
class NoOutputs : public OutputSource {
 public:
  bool Wanted(int) override { return true; }
  Status Allocate(int, DType, const Shape&, void** data) override {
    *data = nullptr;
    return Status::Ok();
  }
  Status AllocateMost(int, DType, const Shape&, void** data, int64_t** count) override {
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

Status MeasureScratch(const Kernel& kernel, const void* params, std::span<const AnyTensor> inputs,
                      std::span<const AnyTensor> outputs, size_t* bytes) {
  NoOutputs none;
  const CudaContext context = CudaContext::Measuring();
  POLYOP_RETURN_IF_ERROR(kernel.launch({params, &context, inputs, outputs, &none}));
  *bytes = context.used();
  return Status::Ok();
}

}  // namespace polyop
