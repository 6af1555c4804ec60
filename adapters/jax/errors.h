// SPDX-License-Identifier: Apache-2.0
// Errors that XLA's functions return.
#pragma once

#include <string>

#include "xla/ffi/api/c_api.h"

namespace polyop::jax {

/// Destroys an error and returns its message, which is empty if there is no error.
inline std::string TakeError(const XLA_FFI_CallFrame& frame, XLA_FFI_Error* error) {
  if (error == nullptr) return {};
  XLA_FFI_Error_GetMessage_Args get = {XLA_FFI_Error_GetMessage_Args_STRUCT_SIZE, nullptr, error, nullptr};
  frame.api->XLA_FFI_Error_GetMessage(&get);
  const std::string message = get.message == nullptr || *get.message == '\0' ? "unknown error" : get.message;
  XLA_FFI_Error_Destroy_Args destroy = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, nullptr, error};
  frame.api->XLA_FFI_Error_Destroy(&destroy);
  return message;
}

}  // namespace polyop::jax
