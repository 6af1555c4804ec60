// SPDX-License-Identifier: Apache-2.0
// The error that ends a command: a message, a hint about the next step, and the exit code.
#pragma once

#include <stdexcept>
#include <string>

#include "core/status.h"

namespace polyop::cli {

/// Exit codes; `polyop --help` lists them.
enum ExitCode {
  kOk = 0,
  kFailed = 1,       // the model failed, or differs from its reference
  kUsage = 2,        // the command line is wrong
  kBadFile = 3,      // a file is missing, damaged or of the wrong kind
  kNotProvided = 4,  // the model needs operators that nobody provides
  kNoRuntime = 5,    // ONNX Runtime, or Python with polyop, is missing or too old
};

/// Commands throw it and main() catches it. It never crosses a C API.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message, std::string hint = "")
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}
  ExitCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  ExitCode code_;
  std::string hint_;
};

inline void Check(const Status& status, ExitCode code, const std::string& hint = "") {
  if (!status.ok()) throw Failure(code, status.message(), hint);
}

}  // namespace polyop::cli
