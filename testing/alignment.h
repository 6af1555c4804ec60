// SPDX-License-Identifier: Apache-2.0
// Checks that results do not depend on the alignment of tensors to cache lines.
#pragma once

#include <vector>

#include "core/op.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Expects every instruction set to write the same bytes, and none outside of the outputs, for any alignment of inputs
/// and outputs. Outputs should be large enough for non-temporal stores.
void ExpectSameAtAnyAlignmentOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs);
template <class P>
void ExpectSameAtAnyAlignment(const P& params, const std::vector<HostTensor>& inputs) {
  ExpectSameAtAnyAlignmentOp(*FindOp(P::kName), &params, inputs);
}

}  // namespace polyop::testing
