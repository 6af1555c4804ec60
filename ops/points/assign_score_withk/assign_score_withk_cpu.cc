// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/assign_score_withk/assign_score_withk_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/points/assign_score_withk/assign_score_withk.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes sums[0, O) of one neighbour: (point - center) [M, O], weighted by scores [M].
template <class T>
void SumByScores(const T* scores, const T* point, const T* center, int64_t matrices, int64_t size, float* sums) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t o = 0; o < size; o += lanes) {
    const auto valid = static_cast<size_t>(std::min(lanes, size - o));
    auto sum = hn::Zero(d);
    for (int64_t m = 0; m < matrices; ++m) {
      const int64_t at = m * size + o;
      const auto difference = hn::Sub(LoadFloatN(d, point + at, valid), LoadFloatN(d, center + at, valid));
      sum = hn::MulAdd(hn::Set(d, ToFloat(scores[m])), difference, sum);
    }
    hn::StoreN(sum, d, sums + o, valid);
  }
}

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status AssignScoreWithkCpu(const AssignScoreWithk&, const Context& context, Tensor<const T, 4> scores,
                           Tensor<const T, 4> point_features, Tensor<const T, 4> center_features,
                           Tensor<const I, 3> knn_idx, Tensor<T, 4> output) {
  const int64_t queries = scores.dim(1), neighbours = scores.dim(2), matrices = scores.dim(3);
  const int64_t points = point_features.dim(1), size = point_features.dim(3), row = matrices * size;
  const int64_t items = scores.dim(0) * queries;
  const int64_t grain = GrainFor(0.2 * static_cast<double>(neighbours) * static_cast<double>(row + size));
  const Scratch<float> tiles = context.Allocate<float>(Context::NumTasks(items, grain) * neighbours * size);
  if (!tiles) return Internal("out of memory: ", neighbours, " neighbours of ", size, " features");
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const tile = tiles.data() + task * neighbours * size;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t batch = item / queries, query = item % queries;
      const I* const index = knn_idx.data() + item * neighbours;
      const auto is_point = [&](int64_t i) { return i >= 0 && i < points; };
      for (int64_t k = 0; k < neighbours; ++k) {
        if (!is_point(index[k]) || !is_point(index[0])) {
          std::fill_n(tile + k * size, size, 0.0f);
          continue;
        }
        SumByScores(scores.data() + (item * neighbours + k) * matrices,
                    point_features.data() + (batch * points + index[k]) * row,
                    center_features.data() + (batch * points + index[0]) * row, matrices, size, tile + k * size);
      }
      T* to = output.data() + (batch * size * queries + query) * neighbours;
      for (int64_t o = 0; o < size; ++o, to += queries * neighbours) {
        for (int64_t k = 0; k < neighbours; ++k) to[k] = FromFloat<T>(tile[k * size + o]);
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(AssignScoreWithk, AssignScoreWithkCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
