// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/ort_api.h"

namespace polyop::onnxruntime {
namespace {

constexpr ONNXTensorElementDataType kTypes[kNumDTypes] = {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,   ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL};

thread_local const Host* the_host = nullptr;

}  // namespace

const Host& CurrentHost() { return *the_host; }

HostScope::HostScope(const Host& host) : before_(the_host) { the_host = &host; }
HostScope::~HostScope() { the_host = before_; }

OrtStatus* ToOrt(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk: return nullptr;
    case StatusCode::kInvalidArgument: return Api().CreateStatus(ORT_INVALID_ARGUMENT, status.message().c_str());
    case StatusCode::kUnsupported: return Api().CreateStatus(ORT_NOT_IMPLEMENTED, status.message().c_str());
    case StatusCode::kInternal: break;
  }
  return Api().CreateStatus(ORT_FAIL, status.message().c_str());
}

OrtStatus* ErrorStatus(const char* message) { return Api().CreateStatus(ORT_FAIL, message); }

Status FromOrt(OrtStatus* status) {
  if (status == nullptr) return Status::Ok();
  const bool argument = Api().GetErrorCode(status) == ORT_INVALID_ARGUMENT;
  Status converted(argument ? StatusCode::kInvalidArgument : StatusCode::kInternal, Api().GetErrorMessage(status));
  Api().ReleaseStatus(status);
  return converted;
}

ONNXTensorElementDataType ToOrt(DType dtype) { return kTypes[static_cast<int>(dtype)]; }

bool FromOrt(ONNXTensorElementDataType type, DType* dtype) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kTypes[i] != type) continue;
    *dtype = static_cast<DType>(i);
    return true;
  }
  return false;
}

}  // namespace polyop::onnxruntime
