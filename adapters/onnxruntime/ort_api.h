// The ONNX Runtime C API as the library got it from its host, and conversions to and from polyop's types.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "core/tensor.h"
#include "onnxruntime_c_api.h"

namespace polyop::onnxruntime {

/// The oldest API that has everything used here (shape inference, ParallelFor): ONNX Runtime 1.17.
inline constexpr uint32_t kOldestApi = 17;

/// The host's API and its version; set once by RegisterCustomOps before anything else runs.
struct Host {
  const OrtApi* api = nullptr;
  uint32_t version = 0;
};
Host& TheHost();
inline const OrtApi& Api() { return *TheHost().api; }

/// ok gives null.
OrtStatus* ToOrt(const Status& status);
/// Releases the OrtStatus.
Status FromOrt(OrtStatus* status);

ONNXTensorElementDataType ToOrt(DType dtype);
/// False for a type that polyop does not have (strings, complex numbers, …).
bool FromOrt(ONNXTensorElementDataType type, DType* dtype);

struct TypeAndShapeDeleter {
  void operator()(OrtTensorTypeAndShapeInfo* info) const { Api().ReleaseTensorTypeAndShapeInfo(info); }
};
using TypeAndShape = std::unique_ptr<OrtTensorTypeAndShapeInfo, TypeAndShapeDeleter>;

}  // namespace polyop::onnxruntime
