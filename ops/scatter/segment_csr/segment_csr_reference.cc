// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/scatter/segment_csr/segment_csr.h"
#include "ops/scatter/segment_csr/segment_csr_values.h"

namespace polyop {
namespace {

double Reduced(SegmentCsr::Reduce reduce, std::vector<double> values) {
  using Reduce = SegmentCsr::Reduce;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (reduce == Reduce::kSum) return sum;
  if (reduce == Reduce::kMean) return values.empty() ? 0 : sum / static_cast<double>(values.size());
  double product = 1, quotient = 1;
  for (double v : values) product *= v, quotient /= v;
  if (reduce == Reduce::kMul) return product;
  if (reduce == Reduce::kDiv) return quotient;
  if (values.empty()) return 0;
  std::erase_if(values, [](double v) { return std::isnan(v); });
  if (values.empty()) return NAN;
  return reduce == Reduce::kMin ? *std::min_element(values.begin(), values.end())
                                : *std::max_element(values.begin(), values.end());
}

template <class I>
Status SegmentCsrReference(const SegmentCsr& op, const Context&, Tensor<const double, 2> src, Tensor<const I, 1> indptr,
                           Tensor<double, 2> out) {
  POLYOP_RETURN_IF_ERROR(CheckIndptr(indptr, src.dim(0)));
  const int64_t channels = src.dim(1);
  for (int64_t m = 0; m < out.dim(0); ++m) {
    for (int64_t c = 0; c < channels; ++c) {
      std::vector<double> column;
      for (int64_t r = indptr[m]; r < indptr[m + 1]; ++r) column.push_back(src[r * channels + c]);
      out[m * channels + c] = Reduced(op.reduce, std::move(column));
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(SegmentCsr, SegmentCsrReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
