// The ONNX Runtime C API as the library got it from its hosts, and conversions to and from polyop's types.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "core/tensor.h"
#include "onnxruntime_c_api.h"

namespace polyop::onnxruntime {

/// The oldest API that has everything used here (shape inference, ParallelFor): ONNX Runtime 1.17.
inline constexpr uint32_t kOldestApi = 17;

/// An ONNX Runtime that registered the library: its API and the version of it, and its own release, 1.N.
struct Host {
  const OrtApi* api = nullptr;
  uint32_t version = 0;
  uint32_t release = 0;
};

/// What ONNX Runtimes before these versions lack: a type for the outputs of variadic operators that come in several
/// types; a type of outputs that shape inference says.
inline constexpr uint32_t kTypesOfVariadic = 18, kTypesByInference = 19;

/// The first releases that were seen to infer shapes where a node leaves out an input before another, where 1.20
/// crashes; and to check an output's index there, without which one that the node left out is written past the end of a
/// list.
inline constexpr uint32_t kInfersBesideMissing = 31, kChecksOutputIndex = 31;

/// The host that this thread works for. A process may hold several ONNX Runtimes, and what one of them made none but
/// its own API may touch.
const Host& TheHost();
inline const OrtApi& Api() { return *TheHost().api; }

/// For as long as it lives, the thread works for `host`. Every call from a runtime opens one, and so does every thread
/// that a loop runs on.
class HostScope {
 public:
  explicit HostScope(const Host& host);
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;

 private:
  const Host* before_;
};

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
