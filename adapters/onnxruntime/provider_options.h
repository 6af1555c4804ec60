// SPDX-License-Identifier: Apache-2.0
// The options of polyop's execution provider.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "adapters/onnxruntime/ort_api.h"

#if ORT_API_VERSION >= 24

namespace polyop::onnxruntime {

struct ProviderOptions {
  bool claims_all = true;  // claim: all known operators, or those of `claimed`
  std::set<std::string> claimed;
  bool only_faster = true;
  bool trace = false;
  bool patterns = true;

  bool Claims(std::string_view type) const { return claims_all || claimed.contains(std::string(type)); }
};

/// Returns the provider's name: "PolyopExecutionProvider" for the library polyop.
std::string ProviderName();
/// Returns true if the session options have options of the provider, because the provider was added with some.
bool HasProviderOptions(const OrtSessionOptions* session);
/// Reads the options. Unknown names and values are errors.
Status ReadProviderOptions(const OrtSessionOptions* session, ProviderOptions* options);

}  // namespace polyop::onnxruntime

#endif
