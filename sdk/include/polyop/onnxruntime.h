// polyop's operators in a C or C++ program that links ONNX Runtime itself: link polyop::onnxruntime, and call
// RegisterCustomOps(options, OrtGetApiBase()) before a session is made with these options.
#pragma once

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Adds polyop's operators to the options, for any ONNX Runtime from 1.17 on. Returns null, or what went wrong: the
/// caller releases it. The library stays loaded for as long as there are such options and sessions.
OrtStatus* ORT_API_CALL RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* api_base);

#ifdef __cplusplus
}
#endif
