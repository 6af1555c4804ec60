// What a library of operators is to those that load it: its name, and the interface that it was built for. polyop's own
// library and those that authors build have the same ones; cmake/library.cmake writes their definitions.
#pragma once

namespace polyop {

/// The interface between libraries of operators and what finds and loads them, polyop's program and its Python package:
/// the functions that libraries export, the JSON that these take and give, and the folders. A change that either side
/// must know of raises it.
inline constexpr int kSdkVersion = 1;

/// "polyop", or an author's "my_ops": the namespace of the operators in PyTorch and in OpenVINO's own files.
const char* LibraryName();

}  // namespace polyop

extern "C" {

/// kSdkVersion of the library. This function is the same in every version.
int polyop_sdk_version();

// What a library for ONNX Runtime has besides, for the program `polyop`.

/// Nodes of new sessions run the operators' reference kernels from now on, or again the fast ones.
void polyop_use_reference_kernels(int use);
/// Kernels run on this instruction set from now on, "" on the machine's best. False if it is none that the library has.
int polyop_force_isa(const char* name);
}
