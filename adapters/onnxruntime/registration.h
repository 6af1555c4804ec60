// What registering the library does, whatever it registers: the runtime's API is negotiated, its operators are made
// once and kept for all of its sessions.
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

/// Reads an entry of a session's configuration; without one `*number` stays.
Status ReadNumber(const OrtSessionOptions* options, const char* key, int* number);

/// Adds what `make_ops` makes to the options: all of it, or an error and nothing. It is called once for a runtime and a
/// number of a table; later registrations of both add the same. No exception leaves it.
OrtStatus* Register(OrtSessionOptions* options, const OrtApiBase* base, int table, const MakeOps& make_ops);

}  // namespace polyop::onnxruntime
