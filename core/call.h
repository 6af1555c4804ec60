// SPDX-License-Identifier: Apache-2.0
// The only way to run an operator, for the runtimes' adapters, the CLI and the tests.
//
//   a node or a call -> Op::MakeParams  finds attributes by name, converts and checks them
//                    -> Prepare         checks the number of inputs, presence, ranks, types, extents, overflow, and the
//                                       operator's own conditions; selects the kernel; computes the outputs' shapes
//                    -> Run             allocates the outputs; returns early if all outputs are empty
//                    -> the kernel
//
// Checks belong here: they then hold in every runtime. Adapters do not repeat them.
#pragma once

#include <array>
#include <span>

#include "core/op.h"

namespace polyop {

/// The maximum number of inputs of a call.
inline constexpr int kMaxInputs = kMaxTensors - 1 + kMaxVariadic;

/// A call whose inputs are checked. `op` and `params` must outlive it.
struct PreparedCall {
  const Op* op = nullptr;
  const void* params = nullptr;
  const Kernel* kernel = nullptr;
  int num_outputs = 0;
  std::array<AnyTensor, kMaxTensors> outputs;  // types and shapes, no data; kFound where the kernel finds an extent
  std::array<Shape, kMaxTensors> max_shapes;   // the outputs' shapes with the upper bounds of found extents
  bool empty = false;                          // all outputs are empty: the kernel is not called

  const Signature& signature() const { return *op->signatures[static_cast<size_t>(kernel->signature)].signature; }
  std::span<const AnyTensor> output_span() const { return {outputs.data(), static_cast<size_t>(num_outputs)}; }
};

/// Checks a call, selects its kernel and computes the outputs' shapes. Reads only those input values that determine
/// shapes. `outputs` says which optional outputs are requested; nothing is allocated.
Status Prepare(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
               OutputSource& outputs, PreparedCall* call);

/// Like Prepare, for runtimes that do not expose the values that determine shapes and provide the outputs' shapes
/// instead. Absent tensors in `outputs` are not requested; found extents are given as their upper bounds.
Status PrepareWithShapes(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
                         std::span<const AnyTensor> outputs, PreparedCall* call);

/// Like PrepareWithShapes, for the maximum extents of many calls, which need not be those of one call: does not check
/// the operator's own conditions. The result is for MeasureScratch only.
Status PrepareMaxima(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
                     std::span<const AnyTensor> outputs, PreparedCall* call);

/// The first part of Prepare: checks the number of inputs, presence, types, ranks and overflow, but no extents.
Status FindChecked(const Op& op, Device device, std::span<const AnyTensor> inputs, const Kernel** kernel);

/// The last part of Prepare: checks an output's extents. Found extents are given as their upper bounds.
Status CheckOutput(const TensorSpec& spec, const Shape& shape);

/// Allocates the outputs and calls the kernel. `context` is the Context or CudaContext of the kernel's device.
Status Run(const PreparedCall& call, std::span<const AnyTensor> inputs, OutputSource& outputs, const void* context);

/// Calls Prepare and Run, on Device::kCpu or Device::kReference.
Status Call(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
            const void* context);

}  // namespace polyop
