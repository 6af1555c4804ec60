// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/scatter/segment_csr/segment_csr.h"

namespace polyop {

/// The gradient with respect to the rows. The gradient of a minimum or maximum goes to the first row that attains it,
/// as in torch_scatter.
struct SegmentCsrBackward : GradientOf<SegmentCsr> {
  static constexpr const char* kName = "segment_csr_backward";
  static constexpr Signature kSignature =
      "grad_out: T[max(P - 1, 0), F], src: T[E, F], indptr: I[P], out: T[max(P - 1, 0), F] -> grad_src: T[E, F]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return SegmentCsr::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
