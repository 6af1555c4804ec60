// SPDX-License-Identifier: Apache-2.0
// Packages of operators that were built with polyop's SDK. python/polyop/packages.py documents how they are found.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"
#include "onnxruntime_c_api.h"

namespace polyop::cli {

/// The loaded ONNX Runtime library of a package.
struct Package {
  std::string name;
  std::filesystem::path folder;  // of its libraries
  std::string catalogue;         // the definitions of its operators, in the format of adapters/catalogue.h
  OrtStatus* (*register_ops)(OrtSessionOptions*, const OrtApiBase*) = nullptr;
  void (*use_reference_kernels)(int) = nullptr;
  int (*force_isa)(const char*) = nullptr;
  const char* (*resolve_node)(const char*) = nullptr;  // as adapters/resolve.h
};

/// Returns the packages that this program can use, and warns once about each of the others.
const std::vector<Package>& Packages();

/// Calls ForceIsa of kernels/cpu/simd.h for polyop's kernels and those of all packages.
Status ForceIsaEverywhere(const std::string& name);

/// Prints "polyop: warning: …" on stderr.
void Warn(const std::string& text);

}  // namespace polyop::cli
