// SPDX-License-Identifier: Apache-2.0
// libpolyop_accelerator.so: registering it overrides ONNX Runtime's standard operators with polyop's. It contains no
// kernels: it calls libpolyop_onnxruntime.so, which is in the same folder.
#include <cstdio>
#include <cstring>

#include "onnxruntime_c_api.h"
#include "platform/exported.h"

extern "C" OrtStatus* polyop_register_accelerator(OrtSessionOptions* options, const OrtApiBase* base);
/// Returns the version of the library that was found. It need not be the one in the same folder: the loader takes any
/// libpolyop_onnxruntime.so that the process loaded before.
extern "C" const char* polyop_accelerator_version();

extern "C" POLYOP_EXPORTED OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  if (std::strcmp(polyop_accelerator_version(), POLYOP_VERSION) == 0) return polyop_register_accelerator(options, base);
  char message[256];
  std::snprintf(message, sizeof message,
                "libpolyop_accelerator.so: expected libpolyop_onnxruntime.so %s, got %s, which this process loaded "
                "before: load both libraries from one installation of polyop",
                POLYOP_VERSION, polyop_accelerator_version());
  return base->GetApi(1)->CreateStatus(ORT_FAIL, message);
}
