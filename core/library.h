// SPDX-License-Identifier: Apache-2.0
// The identity of a library of operators: its name, and the version of the interface that it was built for. polyop's
// own library and user-built libraries share this interface; cmake/library.cmake generates the definitions.
#pragma once

#include <string_view>
#include <vector>

#include "platform/exported.h"

namespace polyop {

/// The version of the interface between libraries of operators and their users, the CLI and the Python package:
/// exported functions, their JSON, and the folder layout. Every incompatible change increments it.
inline constexpr int kSdkVersion = 2;

/// Returns "polyop", or a user's "my_ops": the namespace of the operators in PyTorch and in OpenVINO IR files.
const char* LibraryName();

/// Returns the room of an operator of the library, the folder of ops/ that its own folder is in; "" if it is in none.
const char* RoomOf(std::string_view op);

/// An operator that PyTorch can differentiate.
struct Differentiable {
  const char* op;
  std::vector<int> inputs;  // the indices of the inputs that have gradients, as the operator's formula states them
  bool cpu, cuda;           // true if the operator has a gradient kernel (core/gradient.h) for the device
};

/// Returns the differentiable operators of the library. All libraries know them, but only PyTorch's has the gradients.
const std::vector<Differentiable>& DifferentiableOperators();

}  // namespace polyop

extern "C" {

/// Returns kSdkVersion of the library. Its declaration is the same in every version.
POLYOP_EXPORTED int polyop_sdk_version();

// Functions that only libraries for ONNX Runtime export, for the CLI.

/// Sets whether nodes of sessions that this thread creates run the reference kernels (1), the fast ones (0), or those
/// that the environment variable POLYOP_KERNELS selects (-1), as before the first call.
POLYOP_EXPORTED void polyop_use_reference_kernels(int use);
/// Sets the instruction set of the kernels; "" selects the best of the machine. Returns 0 if the library lacks it.
POLYOP_EXPORTED int polyop_force_isa(const char* name);
}
