// The one door: whoever runs an operator, a runtime's adapter, the program or a test, comes through here.
//
//   a node or a call -> Op::MakeParams  attributes: found by name, converted, checked
//                    -> Prepare         number of inputs, presence, ranks, types, extents, overflow, what the operator
//                                       adds; the kernel and the outputs' shapes
//                    -> Run             the outputs' memory; a call that has no element to make is answered here
//                    -> the kernel
//
// A check that is added here holds in every runtime; none checks on its own what is checked here.
#pragma once

#include <array>
#include <span>

#include "core/op.h"

namespace polyop {

/// Inputs of any call that FindChecked takes.
inline constexpr int kMaxInputs = kMaxTensors - 1 + kMaxVariadic;

/// A call whose inputs were checked. Op and params must outlive it.
struct PreparedCall {
  const Op* op = nullptr;
  const void* params = nullptr;
  const Kernel* kernel = nullptr;
  int num_outputs = 0;
  std::array<AnyTensor, kMaxTensors> outputs;  // types and shapes, no data; kFound where the kernel finds an extent
  std::array<Shape, kMaxTensors> most;         // the same, with the most that a found extent may be
  bool empty = false;                          // no output can have an element: there is nothing to launch

  const Signature& signature() const { return *op->signatures[static_cast<size_t>(kernel->signature)].signature; }
  std::span<const AnyTensor> output_span() const { return {outputs.data(), static_cast<size_t>(num_outputs)}; }
};

/// Checks a call and finds what will run. Of the inputs' data only values that decide shapes are read. `wanted` tells
/// which optional outputs the caller wants.
Status Prepare(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs, OutputSource& wanted,
               PreparedCall* call);

/// The same for a runtime that keeps values that decide shapes to itself and tells the outputs' shapes instead: those
/// that are absent in `outputs` are not wanted, found extents are the most that they may be.
Status PrepareWithShapes(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs,
                         std::span<const AnyTensor> outputs, PreparedCall* call);

/// The first part of Prepare, which looks at no extent but for overflow: number of inputs, presence, types, ranks.
Status FindChecked(const Op& op, Device device, std::span<const AnyTensor> inputs, const Kernel** kernel);

/// The last part: an output's extents, the most where they are found.
Status CheckOutput(const TensorSpec& spec, const Shape& shape);

/// Allocates the outputs and starts the kernel. `context` is that of the kernel's device.
Status Run(const PreparedCall& call, std::span<const AnyTensor> inputs, OutputSource& outputs, const void* context);

/// Both, on the CPU (or Device::kReference).
Status Call(const Op& op, Device device, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
            const void* context);

}  // namespace polyop
