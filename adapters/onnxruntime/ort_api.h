// SPDX-License-Identifier: Apache-2.0
// The ONNX Runtime C API of the host that called the library, and conversions to and from polyop's types.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"
#include "core/tensor.h"
#include "onnxruntime_c_api.h"

namespace polyop::onnxruntime {

/// The oldest API with all functions used here (shape inference, ParallelFor): ONNX Runtime 1.17.
inline constexpr uint32_t kOldestApi = 17;

/// An ONNX Runtime that registered the library: its API, the API's version, and N of its release 1.N.
struct Host {
  const OrtApi* api = nullptr;
  uint32_t version = 0;
  uint32_t release = 0;
};

/// The first API versions that support several output types of a variadic operator, and output types that shape
/// inference sets.
inline constexpr uint32_t kTypesOfVariadic = 18, kTypesByInference = 19;

/// The first releases verified to infer shapes of nodes that omit an inner input (1.20 crashes), and to check an
/// output's index in shape inference (older ones write an omitted output past the end of a list).
inline constexpr uint32_t kInfersWithMissingInputs = 31, kChecksOutputIndex = 31;

/// Returns the host that this thread works for. A process may contain several ONNX Runtimes, and an object of one may
/// only be used with its own API.
const Host& CurrentHost();
inline const OrtApi& Api() { return *CurrentHost().api; }

/// Sets the current thread's host for the lifetime of the object. Every call from a runtime creates one, and so does
/// every thread that runs a parallel loop.
class HostScope {
 public:
  explicit HostScope(const Host& host);
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;

 private:
  const Host* before_;
};

/// Converts a status; ok gives null.
OrtStatus* ToOrt(const Status& status);
/// Returns an error with this message.
OrtStatus* ErrorStatus(const char* message);
/// Converts and releases an OrtStatus.
Status FromOrt(OrtStatus* status);

ONNXTensorElementDataType ToOrt(DType dtype);
/// Converts an element type; false for unsupported ones (strings, complex numbers, …).
bool FromOrt(ONNXTensorElementDataType type, DType* dtype);

struct TypeAndShapeDeleter {
  void operator()(OrtTensorTypeAndShapeInfo* info) const { Api().ReleaseTensorTypeAndShapeInfo(info); }
};
using TypeAndShape = std::unique_ptr<OrtTensorTypeAndShapeInfo, TypeAndShapeDeleter>;

}  // namespace polyop::onnxruntime
