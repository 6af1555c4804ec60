// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/cdist/cdist_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/cdist/cdist.h"
#include "ops/special/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using Kind = DistanceNorm::Kind;

// Calls function(vector of doubles) for the parts of a vector.
template <class V, class Function>
HWY_INLINE V InDouble(V x, const Function& function) {
  const hn::DFromV<V> d;
  if constexpr (sizeof(hn::TFromD<decltype(d)>) == sizeof(double)) {
    return function(x);
  } else {
    const hn::RepartitionToWide<decltype(d)> wide;
    const hn::Half<decltype(d)> half;
    return hn::Combine(d, hn::DemoteTo(half, function(hn::PromoteUpperTo(wide, x))),
                       hn::DemoteTo(half, function(hn::PromoteLowerTo(wide, x))));
  }
}

// Returns x^power of x >= 0.
template <class V>
HWY_INLINE V PowerOf(V x, double power) {
  return InDouble(x,
                  [=](auto y) HWY_ATTR { return special::ExpOf(hn::Mul(special::Number(power), special::LogOf(y))); });
}

// Adds what the norm takes of an element of a difference. kTimes: the power, or 0 if it is `power`.
template <Kind kKind, int kTimes, class V>
HWY_INLINE V Added(V sum, V difference, double power) {
  const hn::DFromV<V> d;
  if constexpr (kKind == Kind::kEuclidean) return hn::MulAdd(difference, difference, sum);
  const V x = hn::Abs(difference);
  if constexpr (kKind == Kind::kSum) return hn::Add(sum, x);
  if constexpr (kKind == Kind::kMax) return hn::IfThenElse(hn::Or(hn::Gt(x, sum), hn::IsNaN(x)), x, sum);
  if constexpr (kKind == Kind::kCount) {
    const V one = hn::IfThenElse(hn::IsNaN(x), x, hn::Set(d, hn::TFromD<decltype(d)>{1}));
    return hn::Add(sum, hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), one));
  }
  if constexpr (kTimes == 0) return hn::Add(sum, PowerOf(x, power));
  V product = x;
  for (int k = 2; k < kTimes; ++k) product = hn::Mul(product, x);
  return hn::MulAdd(product, x, sum);
}

template <Kind kKind, class V>
HWY_INLINE V Root(V sum, double power) {
  if constexpr (kKind == Kind::kEuclidean) return hn::Sqrt(sum);
  if constexpr (kKind == Kind::kPower) return PowerOf(sum, 1 / power);
  return sum;
}

// One batch element: the rows of which a tile is compared with the others one by one.
template <class T>
struct Pairs {
  const T *tiled, *others;
  int64_t tiled_rows, other_rows, size;
  // The distance of other row i and tiled row j is at i * stride + j * tile_stride.
  int64_t stride, tile_stride;
  bool condensed;
  T* to;
};

template <class T>
constexpr int64_t kTileLanes = 2 * static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));

// Compares kRows other rows from `row` on with a tile. `columns`: the tile's elements, a row for each of theirs.
template <Kind kKind, int kTimes, int kRows, class T>
HWY_INLINE void CompareRows(const Pairs<T>& pairs, double power, int64_t row, int64_t begin, int64_t end,
                            const T* columns) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[kRows][2];
  const T* elements[kRows];
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = sums[r][1] = hn::Zero(d);
    elements[r] = pairs.others + (row + r) * pairs.size;
  }
  for (int64_t k = 0; k < pairs.size; ++k) {
    const auto left = hn::Load(d, columns + 2 * k * lanes), right = hn::Load(d, columns + (2 * k + 1) * lanes);
    for (int r = 0; r < kRows; ++r) {
      const auto element = hn::Set(d, elements[r][k]);
      sums[r][0] = Added<kKind, kTimes>(sums[r][0], hn::Sub(element, left), power);
      sums[r][1] = Added<kKind, kTimes>(sums[r][1], hn::Sub(element, right), power);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const int64_t i = row + r, first = pairs.condensed ? std::max(begin, i + 1) : begin;
    if (first >= end) continue;
    const auto left = Root<kKind>(sums[r][0], power), right = Root<kKind>(sums[r][1], power);
    T* const to = pairs.to + (pairs.condensed ? CondensedIndex(i, first, pairs.tiled_rows)
                                              : i * pairs.stride + first * pairs.tile_stride);
    if (pairs.tile_stride == 1 && end - first == 2 * lanes) {
      hn::StoreU(left, d, to);
      hn::StoreU(right, d, to + lanes);
      continue;
    }
    HWY_ALIGN T results[kTileLanes<T>];
    hn::Store(left, d, results);
    hn::Store(right, d, results + lanes);
    for (int64_t j = first; j < end; ++j) to[(j - first) * pairs.tile_stride] = results[j - begin];
  }
}

template <Kind kKind, int kTimes, class T>
HWY_NOINLINE void CompareTile(const Pairs<T>& pairs, double power, int64_t begin, int64_t end, T* columns) {
  constexpr int kRows = 4;
  const int64_t lanes = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for (int64_t j = 0; j < lanes; ++j) {
    const T* const row = pairs.tiled + std::min(begin + j, end - 1) * pairs.size;
    for (int64_t k = 0; k < pairs.size; ++k) columns[k * lanes + j] = row[k];
  }
  const int64_t last = pairs.condensed ? end - 1 : pairs.other_rows;
  int64_t i = 0;
  for (; i + kRows <= last; i += kRows) CompareRows<kKind, kTimes, kRows>(pairs, power, i, begin, end, columns);
  for (; i < last; ++i) CompareRows<kKind, kTimes, 1>(pairs, power, i, begin, end, columns);
}

template <class T>
using Compare = void (*)(const Pairs<T>&, double, int64_t, int64_t, T*);

template <class T>
Compare<T> CompareFor(const DistanceNorm& norm) {
  switch (norm.kind) {
    case Kind::kCount: return CompareTile<Kind::kCount, 0, T>;
    case Kind::kSum: return CompareTile<Kind::kSum, 0, T>;
    case Kind::kEuclidean: return CompareTile<Kind::kEuclidean, 0, T>;
    case Kind::kMax: return CompareTile<Kind::kMax, 0, T>;
    default: break;
  }
  if (norm.p == 3) return CompareTile<Kind::kPower, 3, T>;
  if (norm.p == 4) return CompareTile<Kind::kPower, 4, T>;
  return CompareTile<Kind::kPower, 0, T>;
}

template <class T>
Status CdistCpu(const Cdist& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<const T, kAnyRank> b,
                Tensor<T, kAnyRank> distances) {
  const int rank = a.rank();
  const int64_t rows = a.dim(rank - 2), others = b.dim(rank - 2), size = a.dim(rank - 1);
  const int64_t per_batch = distances.dim(rank - 2) * distances.dim(rank - 1), batches = distances.size() / per_batch;
  const DistanceNorm norm(op);
  const Compare<T> compare = CompareFor<T>(norm);
  const int64_t lanes = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const bool condensed = op.condensed != 0, swapped = !condensed && others < lanes && others < rows;
  const int64_t tiled = swapped ? rows : others, compared = swapped ? others : rows;
  const int64_t tiles = (tiled + lanes - 1) / lanes;
  const double per_element = norm.kind == Kind::kPower ? 10 : 1;
  const int64_t grain = GrainFor(per_element * 0.1 * static_cast<double>(lanes * (compared + 4) * (size + 4)));
  // Rows of columns are aligned, as the memory is.
  const auto compare_tiles = [&](T* columns, int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) {
      const int64_t n = item / tiles, begin = item % tiles * lanes;
      const T *const from_a = a.data() + n * rows * size, *const from_b = b.data() + n * others * size;
      const Pairs<T> pairs{swapped ? from_a : from_b,
                           swapped ? from_b : from_a,
                           tiled,
                           compared,
                           size,
                           swapped ? 1 : others,
                           swapped ? others : 1,
                           condensed,
                           distances.data() + n * per_batch};
      compare(pairs, norm.p, begin, std::min(begin + lanes, tiled), columns);
    }
  };
  if (context.ParallelForWithScratch<T>(batches * tiles, grain, lanes * size, compare_tiles)) return Status::Ok();
  return Internal("out of memory: a tile of ", lanes, " rows of ", size, " elements");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Cdist, CdistCpu, float, double);
}  // namespace polyop
#endif
