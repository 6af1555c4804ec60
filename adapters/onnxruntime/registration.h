// SPDX-License-Identifier: Apache-2.0
// Registers custom operators with ONNX Runtime: negotiates the API, and creates the operators once per runtime for all
// of its sessions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "adapters/onnxruntime/custom_op.h"

namespace polyop::onnxruntime {

struct OpsOfDomain {
  std::string domain;
  CustomOps ops;
};
using MakeOps = std::function<std::vector<OpsOfDomain>(const Host&)>;

/// Reads a positive integer from a session's configuration. Leaves `*number` unchanged if there is no such entry.
Status ReadNumber(const OrtSessionOptions* options, const char* key, int* number);

/// What a library registers with session options, each at most once.
enum class Registration { kOperators, kAccelerator };

/// Adds the operators that `make_ops` creates to the options. If an error is returned before the options refer to an
/// operator, nothing is left; otherwise the operators live on. `make_ops` is called once per runtime, registration and
/// opset (0: any); later registrations add the same operators. Does not throw.
OrtStatus* Register(OrtSessionOptions* options, const OrtApiBase* base, Registration what, int opset,
                    const MakeOps& make_ops);

/// Returns the domains of all operators, which are those that Register() adds, for a runtime's own use; its host lives
/// on. An API older than `oldest_api` is an error. May throw.
Status DomainsOfOperators(const OrtApiBase* base, uint32_t oldest_api, const MakeOps& make_ops, const Host** host,
                          std::vector<OrtCustomOpDomain*>* domains);

}  // namespace polyop::onnxruntime
