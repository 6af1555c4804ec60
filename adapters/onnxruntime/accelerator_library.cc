// libpolyop_accelerator.so: registering it puts polyop's kernels in the place of ONNX Runtime's. It has no kernels
// itself: they are libpolyop_onnxruntime.so's, which lies beside it.
#include "onnxruntime_c_api.h"

extern "C" OrtStatus* polyop_register_accelerator(OrtSessionOptions* options, const OrtApiBase* base);

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  return polyop_register_accelerator(options, base);
}
