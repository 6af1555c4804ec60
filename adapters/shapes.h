// SPDX-License-Identifier: Apache-2.0
// Computes the types and shapes of a call's outputs before there is data, for PyTorch's fake kernels and for
// JAX's tracing.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/op.h"
#include "platform/exported.h"

namespace polyop {

/// Returns the device of the kernels for tensors on `device`, kCpu or kCuda: kReference for types that only the
/// reference kernels support (f64, for gradient checks), else `device`. Reference kernels compute in host memory.
Device DeviceFor(const Op& op, Device device, std::span<const AnyTensor> inputs);

/// Checks a call like a real one and returns its outputs. The JSON request
///
///   {"operator": "nms", "cuda": false, "attributes": {"iou_threshold": 0.5},
///    "inputs": [{"name": "boxes", "type": "f32", "shape": [null, null]}, null]}
///
/// has an element for each input, null for a missing one. An extent is a number, null if it is unknown, or a symbol,
/// which messages show. An input of known values may have
/// them as a list, "values". Real numbers may be texts: "inf". The response is
///
///   {"outputs": [{"type": "i64", "shape": [["found", "K", ["extent", 0, 0]]]}],
///    "checks": [[["extent", 0, 0], ["extent", 1, 0]]]}
///
/// where `checks` are pairs of extents that must be equal; shapes and checks are expressions of
/// adapters/tree_domain.h. If the call is invalid, the response is {"error": "…"} with the message of a real
/// call.
std::string InferShapes(std::string_view request);

}  // namespace polyop

/// Returns InferShapes(request). The library owns the text, which lives until the thread's next call.
extern "C" POLYOP_EXPORTED const char* polyop_shapes(const char* request);
