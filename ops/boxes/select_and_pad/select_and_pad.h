// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Selects the rows of features whose flag is set and pads them to a fixed number of rows.
struct SelectAndPad {
  int64_t rows = 1;

  static constexpr const char* kName = "select_and_pad";
  static constexpr Signature kSignature = "feat: T[B, Q, C], flags: I[Q], invalid: T[C] -> selected: T[B, P, C]";
  static constexpr NodeName kNodes[] = {"polyop::SelectAndPadPlugin", "::SelectAndPadPlugin"};
  static constexpr std::tuple kAttributes = {
      Attr("P", &SelectAndPad::rows, "number of output rows").AtLeast(0).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Selects the rows of features whose flag is set and pads them to a fixed number of rows.",
      .semantics = R"(For each b, selected holds the first P rows of feat[b] whose flag is not 0, in order, followed
          by copies of the row `invalid`.)",
      .source = "Autoware's SelectAndPadPlugin (BEVFormer)",
      .differences = "The plugin is wrong for more than one batch entry.",
  };
};

}  // namespace polyop
