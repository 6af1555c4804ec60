// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/linalg/householder.h"
#include "ops/linalg/svd/svd.h"
#include "ops/linalg/vectors.h"

namespace polyop {
namespace {

// A matrix as the sum of outer products of two lists of vectors.
struct SvdPairs {
  std::vector<std::vector<double>> longer, shorter;
};

double LargestFirst(const std::vector<double>& vector) {
  double largest = 0;
  for (const double x : vector) largest = std::max(largest, std::fabs(x));
  const auto first = std::ranges::find_if(vector, [&](double x) { return std::fabs(x) >= 0.999 * largest; });
  return first == vector.end() || *first >= 0 ? 1 : -1;
}

// Rotates the longer vectors until they are orthogonal, with angles from their products.
void MakeOrthogonal(SvdPairs& pairs) {
  constexpr int kMaxSweeps = 60;
  const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  const auto rotate = [](std::vector<double>& x, std::vector<double>& y, double angle) {
    const double c = std::cos(angle), s = std::sin(angle);
    for (size_t i = 0; i < x.size(); ++i) {
      const double first = x[i];
      x[i] = c * first - s * y[i];
      y[i] = s * first + c * y[i];
    }
  };
  bool again = true;
  for (int sweep = 0; again && sweep < kMaxSweeps; ++sweep) {
    again = false;
    for (size_t p = 0; p < pairs.longer.size(); ++p) {
      for (size_t q = p + 1; q < pairs.longer.size(); ++q) {
        auto &x = pairs.longer[p], &y = pairs.longer[q];
        const double product = dot(x, y), xx = dot(x, x), yy = dot(y, y);
        if (!(std::fabs(product) > 1e-15 * std::sqrt(xx * yy))) continue;
        const double angle = 0.5 * std::atan2(2 * product, yy - xx);
        rotate(x, y, angle);
        rotate(pairs.shorter[p], pairs.shorter[q], angle);
        again = true;
      }
    }
  }
}

Status SvdReference(const Svd& op, const Context&, Tensor<const double, kAnyRank> a, Tensor<double, kAnyRank> u,
                    Tensor<double, kAnyRank> s, Tensor<double, kAnyRank> vh) {
  const int64_t rows = a.dim(a.rank() - 2), columns = a.dim(a.rank() - 1), least = std::min(rows, columns);
  const bool tall = rows >= columns;
  const auto length = static_cast<size_t>(std::max(rows, columns)), count = static_cast<size_t>(least);
  int64_t matrices = 1;
  for (int d = 0; d + 2 < a.rank(); ++d) matrices *= a.dim(d);
  const int64_t u_columns = op.full_matrices != 0 ? rows : least, vh_rows = op.full_matrices != 0 ? columns : least;
  for (int64_t n = 0; n < matrices; ++n) {
    SvdPairs pairs;
    bool finite = true;
    double largest = 0;
    for (size_t k = 0; k < count; ++k) {
      pairs.shorter.emplace_back(count, 0.0)[k] = 1;
      std::vector<double>& vector = pairs.longer.emplace_back(length);
      for (size_t i = 0; i < length; ++i) {
        const auto row = static_cast<int64_t>(tall ? i : k), column = static_cast<int64_t>(tall ? k : i);
        vector[i] = a[(n * rows + row) * columns + column];
        finite = finite && std::isfinite(vector[i]);
        largest = std::max(largest, std::fabs(vector[i]));
      }
    }
    if (largest == 0) largest = 1;
    for (std::vector<double>& vector : pairs.longer) {
      for (double& x : vector) x /= largest;
    }
    if (finite) MakeOrthogonal(pairs);
    std::vector<double> lengths(count), q, taus(count);
    for (size_t k = 0; k < count; ++k) lengths[k] = linalg::LengthOf(pairs.longer[k].data(), std::max(rows, columns));
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t k) { return lengths[k]; });
    for (size_t k = 0; k < count; ++k) {
      s[n * least + static_cast<int64_t>(k)] = finite ? lengths[order[k]] * largest : NAN;
      q.insert(q.end(), pairs.longer[order[k]].begin(), pairs.longer[order[k]].end());
    }
    if (op.vectors == 0) continue;
    linalg::FactorQr(q.data(), least, std::max(rows, columns), taus.data());
    const auto store = [&](bool in_u, size_t k, const std::vector<double>& vector, double sign) {
      for (size_t i = 0; i < vector.size(); ++i) {
        const auto at = static_cast<int64_t>(i), of = static_cast<int64_t>(k);
        (in_u ? u[(n * rows + at) * u_columns + of] : vh[(n * vh_rows + of) * columns + at]) =
            finite ? sign * vector[i] : NAN;
      }
    };
    std::vector<double> column(length);
    for (size_t k = 0; k < (op.full_matrices != 0 ? length : count); ++k) {
      linalg::ColumnOfQ(q.data(), least, std::max(rows, columns), taus.data(), static_cast<int64_t>(k), column.data());
      if (k < count) {
        for (double& x : column) x *= q[k * length + k] < 0 ? -1 : 1;
        const double sign = LargestFirst(tall ? column : pairs.shorter[order[k]]);
        store(tall, k, column, sign);
        store(!tall, k, pairs.shorter[order[k]], sign);
      } else {
        store(tall, k, column, LargestFirst(column));
      }
    }
  }
  return op.CheckConverged(a.shape(), s.data(), s.dim(s.rank() - 1));
}
POLYOP_REFERENCE_KERNEL(Svd, SvdReference);

}  // namespace
}  // namespace polyop
