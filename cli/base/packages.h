// Operators of others: packages that were built with polyop's SDK. python/polyop/packages.py says how they are found.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"
#include "onnxruntime_c_api.h"

namespace polyop::cli {

/// A package's library for ONNX Runtime, loaded.
struct Package {
  std::string name;
  std::string catalogue;  // its operators' definitions, as adapters/catalogue.h writes them
  OrtStatus* (*register_ops)(OrtSessionOptions*, const OrtApiBase*) = nullptr;
  void (*use_reference_kernels)(int) = nullptr;
  int (*force_isa)(const char*) = nullptr;
};

/// Those that this program can use. Of others stderr says why not, once.
const std::vector<Package>& Packages();

/// As ForceIsa of kernels/cpu/simd.h, for polyop's kernels and those of all packages.
Status ForceIsaEverywhere(const std::string& name);

/// "polyop: warning: …" on stderr.
void Warn(const std::string& text);

}  // namespace polyop::cli
