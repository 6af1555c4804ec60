// SPDX-License-Identifier: Apache-2.0
// Runs GPU kernels through a runtime's memory and stream. Does not include CUDA's headers.
#include "core/device_run.h"

#include <vector>

#include "core/call.h"
#include "core/cuda_context.h"

namespace polyop {
namespace {

// Outputs of known size are allocated by the runtime directly. The others are allocated for their upper bound until
// their size is read.
class DeviceOutputs : public OutputSource {
 public:
  DeviceOutputs(const PreparedCall& call, OutputSource& final, const DeviceBackend& backend)
      : call_(call), final_(final), backend_(backend) {}
  bool Requested(int index) override { return final_.Requested(index); }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    return final_.Allocate(index, dtype, shape, data);
  }
  Status AllocateUpperBound(int index, DType dtype, const Shape& shape, void** data, int64_t** count) override {
    const size_t bytes = static_cast<size_t>(shape.NumElements().value_or(0)) * SizeOf(dtype);
    *data = backend_.allocate(backend_.self, bytes + 1);
    *count = static_cast<int64_t*>(backend_.allocate(backend_.self, sizeof(int64_t)));
    if (*data == nullptr || *count == nullptr) return Internal("out of device memory: ", bytes, " bytes");
    pending_.push_back({index, dtype, shape, *data, *count});
    return Status::Ok();
  }

  // Reads the found sizes and copies such outputs to memory of the runtime.
  Status Finish() {
    for (const PendingOutput& output : pending_) {
      Shape shape = output.shape;
      int64_t rows = 0;
      POLYOP_RETURN_IF_ERROR(TheGpuMemory().copy(backend_.stream, &rows, output.count, sizeof rows, true));
      const Shape& declared = call_.outputs[static_cast<size_t>(output.index)].shape;
      for (int d = 0; d < shape.rank(); ++d) {
        if (declared[d] != kFound) continue;
        if (rows < 0 || rows > shape[d]) {
          return Internal("output ", output.index, ": expected at most ", shape[d], " rows, got ", rows);
        }
        shape[d] = rows;
      }
      void* data = nullptr;
      POLYOP_RETURN_IF_ERROR(final_.Allocate(output.index, output.dtype, shape, &data));
      const size_t bytes = static_cast<size_t>(shape.NumElements().value_or(0)) * SizeOf(output.dtype);
      if (bytes > 0) POLYOP_RETURN_IF_ERROR(TheGpuMemory().copy(backend_.stream, data, output.data, bytes, false));
    }
    return Status::Ok();
  }

 private:
  struct PendingOutput {
    int index;
    DType dtype;
    Shape shape;
    void* data;
    int64_t* count;
  };
  const PreparedCall& call_;
  OutputSource& final_;
  const DeviceBackend& backend_;
  std::vector<PendingOutput> pending_;
};

GpuMemory& Registered() {
  static GpuMemory memory;
  return memory;
}

}  // namespace

const GpuMemory& TheGpuMemory() { return Registered(); }

bool RegisterGpuMemory(const GpuMemory& memory) {
  Registered() = memory;
  return true;
}

Status LaunchOnDevice(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
                      const DeviceBackend& backend, PreparedCall* call) {
  POLYOP_RETURN_IF_ERROR(Prepare(op, GpuDevice(), params, inputs, outputs, call));
  size_t bytes = 0;
  POLYOP_RETURN_IF_ERROR(MeasureScratch(*call, inputs, &bytes));
  void* const scratch = bytes == 0 ? nullptr : backend.allocate(backend.self, bytes);
  if (bytes > 0 && scratch == nullptr) return Internal("out of device memory: ", bytes, " bytes of scratch");
  const CudaContext cuda(backend.stream, scratch, bytes);
  return Run(*call, inputs, outputs, &cuda);
}

Status CallOnDevice(const Op& op, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
                    const DeviceBackend& backend) {
  PreparedCall call;
  DeviceOutputs device_outputs(call, outputs, backend);
  POLYOP_RETURN_IF_ERROR(LaunchOnDevice(op, params, inputs, device_outputs, backend, &call));
  return device_outputs.Finish();
}

}  // namespace polyop
