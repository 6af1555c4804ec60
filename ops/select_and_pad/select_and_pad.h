#pragma once

#include "core/operator.h"

namespace polyop {

/// The rows of features that flags name, and a fixed number of rows in all.
struct SelectAndPad {
  int64_t rows = 1;

  static constexpr const char* kName = "select_and_pad";
  static constexpr Signature kSignature = "feat: T[B, Q, C], flags: I[Q], invalid: T[C] -> selected: T[B, P, C]";
  static constexpr NodeName kNodes[] = {"polyop::SelectAndPadPlugin", "::SelectAndPadPlugin"};
  static constexpr std::tuple kAttributes = {
      Attr("P", &SelectAndPad::rows, "rows that are given").AtLeast(0).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Selects the rows of features whose flag is set, and fills up to a fixed number of rows.",
      .semantics =
          "For each b, selected holds the rows of feat[b] whose flag is not 0, in their order, the first P of them, "
          "and "
          "behind them the row `invalid`.",
      .source = "Autoware's SelectAndPadPlugin (BEVFormer)",
      .differences = "The plugin is wrong for more than one batch entry.",
  };
};

}  // namespace polyop
