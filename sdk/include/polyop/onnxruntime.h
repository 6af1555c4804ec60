// SPDX-License-Identifier: Apache-2.0
// polyop's operators for C and C++ programs that link ONNX Runtime: link polyop::onnxruntime, and call
// RegisterCustomOps(options, OrtGetApiBase()) before creating a session with these options.
#pragma once

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Adds polyop's operators to the options. Requires ONNX Runtime 1.17 or newer. Returns null, or an error that the
/// caller releases. The library must stay loaded as long as such options and sessions exist.
OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* api_base);

#ifdef __cplusplus
}
#endif
