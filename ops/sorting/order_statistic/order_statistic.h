// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// One element of each row that its order or its frequency selects.
struct OrderStatistic {
  enum class Statistic { kKth, kMedian, kNanMedian, kMode };
  Statistic statistic = Statistic::kMedian;
  int64_t k = 1;

  static constexpr const char* kName = "order_statistic";
  static constexpr Signature kSignature = "x: T[...B, N] -> value: T[...B], index: i64[...B]";
  static constexpr NodeName kNodes[] = {"polyop::OrderStatistic"};
  static constexpr std::tuple kAttributes = {
      Attr("statistic", &OrderStatistic::statistic,
           R"(kth: the k-th smallest element; median: the lower median, or NaN if there is one; nanmedian: the lower
           median of the elements that are not NaN; mode: the element that occurs most often)")
          .OneOf("kth", "median", "nanmedian", "mode"),
      Attr("k", &OrderStatistic::k, "which element kth selects, from 1").AtLeast(1),
  };
  static constexpr Doc kDoc = {
      .summary = "Selects one element of each row: the k-th smallest, the median, or the most frequent one.",
      .semantics = R"(`index` is the first index of the selected value, for mode the last one. NaN is greater than every
          number, and equal to no element: it is the mode only if all elements are NaN. Of several modes the smallest
          is selected. 0 and -0 are equal. nanmedian gives NaN if all elements are NaN.)",
      .source = "`torch.kthvalue`, `torch.median`, `torch.nanmedian`, `torch.mode`",
      .differences = "torch does not specify which index it returns of equal elements.",
      .not_portable = "ONNX's TopK sorts the whole row, which takes several times as long, and finds no mode.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& x = inputs[0].shape;
    const int64_t length = x[x.rank() - 1], least = statistic == Statistic::kKth ? k : 1;
    if (length >= least) return Status::Ok();
    return InvalidArgument("'x': expected at least ", least, least == 1 ? " element" : " elements",
                           " in the last dimension, got shape ", ToString(x));
  }
};

}  // namespace polyop
