// A call of an operator with OpenVINO's tensors.
#pragma once

#include <openvino/runtime/tensor.hpp>
#include <vector>

#include "core/op.h"

namespace polyop::openvino {

/// Types under which OpenVINO's CPU plugin hands over wider ones: i64 arrives as i32, bool as u8.
inline bool MayBeNarrowed(DType dtype) { return dtype == DType::kI32 || dtype == DType::kU8; }

/// Runs the operator on the threads of the caller's arena. `present` tells which of the operator's inputs the tensors
/// are, `wanted` which of the outputs somebody reads.
Status CallNode(const Op& op, const void* params, const std::vector<int64_t>& present, const ov::TensorVector& inputs,
                const std::vector<bool>& wanted, ov::TensorVector& outputs);

}  // namespace polyop::openvino
