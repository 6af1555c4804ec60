// Functions that calls and fake kernels share before core/call.h.
#pragma once

#include <span>
#include <string>

#include "core/library.h"
#include "core/op.h"

namespace polyop::torch_adapter {

/// Returns the operator's name in PyTorch: "polyop::roi_align".
inline std::string CallNameOf(std::string_view op) { return Concat(LibraryName(), "::", op); }

inline Status UnsupportedType(std::string_view input) {
  return InvalidArgument("'", input, "': unsupported element type");
}

/// Returns the device of the kernels for CPU tensors: kReference for types that only the reference kernels support
/// (f64, for gradient checks), else kCpu.
inline Device HostDeviceFor(const Op& op, std::span<const AnyTensor> inputs) {
  const Kernel* kernel = nullptr;
  const bool naive =
      !op.FindKernel(Device::kCpu, inputs, &kernel).ok() && op.FindKernel(Device::kReference, inputs, &kernel).ok();
  return naive ? Device::kReference : Device::kCpu;
}

}  // namespace polyop::torch_adapter
