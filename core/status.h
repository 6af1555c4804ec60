// SPDX-License-Identifier: Apache-2.0
// The result of functions that can fail. No exception crosses a kernel or an adapter.
#pragma once

#include <sstream>
#include <string>
#include <utility>

namespace polyop {

enum class StatusCode { kOk, kInvalidArgument, kUnsupported, kInternal };

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return {}; }
  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// Returns this status with `prefix` before its message; ok stays ok.
  Status WithPrefix(const std::string& prefix) const { return ok() ? Status() : Status(code_, prefix + message_); }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

/// Concatenates the parts, which must be streamable.
template <class... Parts>
std::string Concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// The error for wrong arguments of the caller: a shape, a value, an attribute.
template <class... Parts>
Status InvalidArgument(const Parts&... parts) {
  return {StatusCode::kInvalidArgument, Concat(parts...)};
}

/// The error for a valid request that is not implemented (a data type, a device).
template <class... Parts>
Status Unsupported(const Parts&... parts) {
  return {StatusCode::kUnsupported, Concat(parts...)};
}

template <class... Parts>
Status Internal(const Parts&... parts) {
  return {StatusCode::kInternal, Concat(parts...)};
}

#define POLYOP_RETURN_IF_ERROR(expression)                                      \
  do {                                                                          \
    if (::polyop::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

}  // namespace polyop
