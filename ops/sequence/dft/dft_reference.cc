// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "ops/sequence/dft/dft.h"

namespace polyop {
namespace {

using DftLine = std::vector<std::complex<double>>;

// Returns sums of line[j] exp(sign 2 pi i j k / n) by the definition. An even line is split into its even and its odd
// elements, so that the time for long lines is acceptable.
DftLine TransformLine(const DftLine& line, double sign) {
  const size_t n = line.size();
  DftLine roots(n), result(n);
  for (size_t k = 0; k < n; ++k) {
    roots[k] = std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
  }
  if (n % 2 == 0) {
    DftLine halves[2] = {DftLine(n / 2), DftLine(n / 2)};
    for (size_t j = 0; j < n; ++j) halves[j % 2][j / 2] = line[j];
    const DftLine even = TransformLine(halves[0], sign), odd = TransformLine(halves[1], sign);
    for (size_t k = 0; k < n; ++k) result[k] = even[k % (n / 2)] + roots[k] * odd[k % (n / 2)];
    return result;
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < n; ++j) result[k] += line[j] * roots[j * k % n];
  }
  return result;
}

// Transforms all lines of a dimension.
void TransformDimension(DftLine& elements, int64_t length, int64_t step, double sign) {
  DftLine line(static_cast<size_t>(length));
  for (size_t first = 0; first < elements.size(); ++first) {
    if (static_cast<int64_t>(first) / step % length != 0) continue;
    for (size_t i = 0; i < line.size(); ++i) line[i] = elements[first + i * static_cast<size_t>(step)];
    line = TransformLine(line, sign);
    for (size_t i = 0; i < line.size(); ++i) elements[first + i * static_cast<size_t>(step)] = line[i];
  }
}

Status DftReference(const Dft& op, const Context&, Tensor<const double, kAnyRank> signal,
                    Tensor<double, kAnyRank> output) {
  const DftExtents extents = DftExtents::Of(op, signal.shape(), output.shape());
  const double sign = op.inverse != 0 ? 1 : -1, scale = extents.Scale(op);
  constexpr size_t kLast = DftExtents::kLast;
  const int64_t given_last = extents.input[kLast], whole_last = extents.Whole(op)[kLast];
  const int64_t parts = op.onesided * op.inverse != 0 ? 1 : 2;
  for (int64_t b = 0; b < extents.batches; ++b) {
    bool finite = true;
    DftLine elements(static_cast<size_t>(extents.inputs()));
    for (int64_t i = 0; i < extents.inputs(); ++i) {
      const double* const at = &signal[(b * extents.inputs() + i) * extents.parts];
      elements[static_cast<size_t>(i)] = {at[0], extents.parts == 2 ? at[1] : 0.0};
      finite = finite && std::isfinite(at[0]) && (extents.parts == 1 || std::isfinite(at[1]));
    }
    int64_t step = extents.inputs();
    for (size_t d = 0; d < kLast; ++d) {
      step /= extents.input[d];
      TransformDimension(elements, extents.input[d], step, sign);
    }
    // The last dimension: the whole spectrum of each line, its transform, and the elements that the output has.
    for (int64_t line = 0; line < extents.inputs() / given_last; ++line) {
      DftLine row(static_cast<size_t>(whole_last));
      const std::complex<double>* const given = &elements[static_cast<size_t>(line * given_last)];
      for (int64_t i = 0; i < whole_last; ++i) {
        row[static_cast<size_t>(i)] = i < given_last ? given[i] : std::conj(given[whole_last - i]);
      }
      row = TransformLine(row, sign);
      for (int64_t i = 0; i < extents.output[kLast]; ++i) {
        double* const to = &output[(b * extents.outputs() + line * extents.output[kLast] + i) * parts];
        to[0] = finite ? row[static_cast<size_t>(i)].real() * scale : NAN;
        if (parts == 2) to[1] = finite ? row[static_cast<size_t>(i)].imag() * scale : NAN;
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Dft, DftReference);

}  // namespace
}  // namespace polyop
