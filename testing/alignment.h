// Tensors that begin anywhere in a cache line: results must not depend on it.
#pragma once

#include <vector>

#include "core/op.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Expects every instruction set to write the same bytes, and nothing beside them, wherever inputs and outputs begin.
/// Give it outputs that are large enough to be streamed past the caches.
void ExpectSameAtAnyAlignmentOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs);
template <class P>
void ExpectSameAtAnyAlignment(const P& params, const std::vector<HostTensor>& inputs) {
  ExpectSameAtAnyAlignmentOp(*FindOp(P::kName), &params, inputs);
}

}  // namespace polyop::testing
