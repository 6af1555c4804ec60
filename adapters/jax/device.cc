// SPDX-License-Identifier: Apache-2.0
#include "adapters/jax/device.h"

#include <cstdint>
#include <memory>
#include <string>

#include "adapters/jax/errors.h"
#include "core/cuda_context.h"

namespace polyop::jax {
namespace {

// The largest alignment that XLA lets a handler request.
constexpr size_t kXlaAlignment = 16;

}  // namespace

Device::~Device() {
  for (const Block& block : blocks_) {
    XLA_FFI_DeviceMemory_Free_Args args = {XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE, nullptr, frame_.ctx, block.bytes,
                                           block.data};
    (void)TakeError(frame_, frame_.api->XLA_FFI_DeviceMemory_Free(&args));
  }
}

Status Device::Open(polyop_device* device) {
  XLA_FFI_Stream_Get_Args args = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, nullptr, frame_.ctx, nullptr};
  const std::string error = TakeError(frame_, frame_.api->XLA_FFI_Stream_Get(&args));
  if (!error.empty()) return Internal("XLA's stream is unavailable: ", error);
  *device = {this, args.stream, Allocate, AllocateFound};
  return Status::Ok();
}

void* Device::Allocate(void* self, size_t bytes) {
  auto& device = *static_cast<Device*>(self);
  const size_t size = bytes + CudaContext::kAlignment - kXlaAlignment;
  XLA_FFI_DeviceMemory_Allocate_Args args = {
      XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE, nullptr, device.frame_.ctx, size, kXlaAlignment, nullptr};
  if (!TakeError(device.frame_, device.frame_.api->XLA_FFI_DeviceMemory_Allocate(&args)).empty()) return nullptr;
  device.blocks_.push_back({args.data, size});
  void* begin = args.data;
  size_t space = size;
  return std::align(CudaContext::kAlignment, bytes, begin, space);
}

void* Device::AllocateFound(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape,
                            int64_t** count) {
  auto& device = *static_cast<Device*>(self);
  // All outputs of found size have the same extent: one of them reports it.
  *count = device.results_.CountOf(output);
  if (*count == nullptr) *count = static_cast<int64_t*>(Allocate(self, sizeof(int64_t)));
  return device.results_.Data(output, type, rank, shape);
}

}  // namespace polyop::jax
