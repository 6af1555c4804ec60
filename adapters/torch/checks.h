// What a call and its fake kernel do alike before the one door of core/call.h.
#pragma once

#include <span>
#include <string>

#include "core/library.h"
#include "core/op.h"

namespace polyop::torch_adapter {

/// "polyop::roi_align", as PyTorch calls it.
inline std::string CallNameOf(std::string_view op) { return Concat(LibraryName(), "::", op); }

inline Status LacksType(std::string_view input) {
  return InvalidArgument("'", input, "' has an element type that polyop lacks");
}

/// Whose kernels serve inputs in the processor's memory: f64 has naive ones alone, exact enough to check gradients
/// with.
inline Device HostDeviceFor(const Op& op, std::span<const AnyTensor> inputs) {
  const Kernel* kernel = nullptr;
  const bool naive =
      !op.FindKernel(Device::kCpu, inputs, &kernel).ok() && op.FindKernel(Device::kReference, inputs, &kernel).ok();
  return naive ? Device::kReference : Device::kCpu;
}

}  // namespace polyop::torch_adapter
