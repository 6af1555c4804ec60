// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/assign_score_withk/assign_score_withk_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/items_by_target.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/points/assign_score_withk/assign_score_withk_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// One batch element: `grads` [queries * neighbours][pitch] holds the gradients of all features of a neighbour. Features
// after the last are 0.
template <class T, class I>
struct ScoredCloud {
  const float* grads;
  const T* scores;
  const T* point_features;
  const T* center_features;
  const I* index;
  int64_t queries, neighbours, matrices, points, size, pitch;

  bool IsPoint(int64_t i) const { return i >= 0 && i < points; }
  int64_t CenterOf(int64_t query) const {
    const int64_t center = index[query * neighbours];
    return IsPoint(center) ? center : -1;
  }
  int64_t PointOf(int64_t row) const {
    const int64_t point = index[row];
    return IsPoint(point) && CenterOf(row / neighbours) >= 0 ? point : -1;
  }

  // Computes the gradients [matrices] of the scores of one neighbour.
  void ScoresBackward(int64_t row, T* to) const {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), point = PointOf(row);
    if (point < 0) {
      std::fill_n(to, matrices, FromFloat<T>(0));
      return;
    }
    const T* p = point_features + point * matrices * size;
    const T* c = center_features + CenterOf(row / neighbours) * matrices * size;
    const float* const grad = grads + row * pitch;
    for (int64_t m = 0; m < matrices; ++m, p += size, c += size) {
      auto sum = hn::Zero(d);
      int64_t o = 0;
      for (; o + lanes <= size; o += lanes) {
        sum = hn::MulAdd(hn::LoadU(d, grad + o), hn::Sub(LoadFloat(d, p + o), LoadFloat(d, c + o)), sum);
      }
      if (o < size) {
        const size_t rest = static_cast<size_t>(size - o);
        const auto difference = hn::Sub(LoadFloatN(d, p + o, rest), LoadFloatN(d, c + o, rest));
        sum = hn::MulAdd(hn::LoadU(d, grad + o), difference, sum);
      }
      to[m] = FromFloat<T>(hn::ReduceSum(d, sum));
    }
  }

  // Prefetches what AddNeighbour reads, up to 256 bytes of each.
  void Prefetch(int64_t row) const {
    for (int64_t o = 0; o < std::min<int64_t>(pitch, 64); o += 16) __builtin_prefetch(grads + row * pitch + o);
    constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
    for (int64_t m = 0; m < std::min(matrices, 4 * kLine); m += kLine) __builtin_prefetch(scores + row * matrices + m);
  }
  // Adds sign * score * gradient of one neighbour to sums [matrices][pitch]. A score of 0 adds nothing.
  void AddNeighbour(int64_t row, float sign, float* sums) const {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const float* const grad = grads + row * pitch;
    for (int64_t m = 0; m < matrices; ++m) {
      const float score = ToFloat(scores[row * matrices + m]);
      if (score == 0) continue;
      const auto weight = hn::Set(d, sign * score);
      float* const sum = sums + m * pitch;
      for (int64_t o = 0; o < pitch; o += lanes) {
        hn::StoreU(hn::MulAdd(weight, hn::LoadU(d, grad + o), hn::LoadU(d, sum + o)), d, sum + o);
      }
    }
  }
};

// Computes the gradients `to` [points][matrices][size] of features. `add(point, sums)` adds those of one point.
template <class Cloud, class T, class Add>
void FeaturesBackward(const Context& context, const Cloud& cloud, int64_t grain, float* memory, const Add& add, T* to) {
  const int64_t row = cloud.matrices * cloud.pitch;
  context.ParallelFor(cloud.points, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* const sums = memory + task * row;
    for (int64_t point = begin; point < end; ++point) {
      std::fill_n(sums, row, 0.0f);
      add(point, sums);
      for (int64_t m = 0; m < cloud.matrices; ++m) {
        NarrowRow(sums + m * cloud.pitch, cloud.size, to + (point * cloud.matrices + m) * cloud.size);
      }
    }
  });
}

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status AssignScoreWithkBackwardCpu(const AssignScoreWithkBackward&, const Context& context,
                                   Tensor<const T, 4> grad_output, Tensor<const T, 4> scores,
                                   Tensor<const T, 4> point_features, Tensor<const T, 4> center_features,
                                   Tensor<const I, 3> knn_idx, std::optional<Tensor<T, 4>> grad_scores,
                                   std::optional<Tensor<T, 4>> grad_points, std::optional<Tensor<T, 4>> grad_centers) {
  if (grad_output.size() == 0) {  // the other extents may be huge
    for (const auto& output : {grad_scores, grad_points, grad_centers}) {
      if (output) std::fill_n(output->data(), output->size(), FromFloat<T>(0));
    }
    return Status::Ok();
  }
  const int64_t queries = scores.dim(1), neighbours = scores.dim(2), rows = queries * neighbours;
  const int64_t matrices = scores.dim(3), points = point_features.dim(1), size = point_features.dim(3);
  if (rows > INT32_MAX) return InvalidArgument("'knn_idx': expected at most ", INT32_MAX, " neighbours, got ", rows);
  const int64_t pitch = ChannelBlocks::BlocksFor(size) * kBlockChannels, sums_size = matrices * pitch;
  const double of_row = 0.2 * static_cast<double>(sums_size);
  const int64_t grain =
      GrainFor(of_row * (1 + static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(points, 1))));
  const Scratch<float> grads = context.Allocate<float>(rows * pitch);
  const Scratch<float> sums = context.Allocate<float>(Context::NumTasks(points, grain) * sums_size);
  ItemsByTarget by_point(context, grad_points ? rows : 0, points);
  ItemsByTarget by_center(context, grad_centers ? queries : 0, points);
  if (!grads || !sums || !by_point || !by_center) {
    return Internal("out of memory: gradients of ", rows, " neighbours and ", points, " points");
  }
  for (int64_t b = 0; b < scores.dim(0); ++b) {
    ToChannelsLast(context, grad_output.data() + b * size * rows, 1, size, rows, grads.data());
    const int64_t features = b * points * matrices * size;
    const ScoredCloud<T, I> cloud{grads.data(),
                                  scores.data() + b * rows * matrices,
                                  point_features.data() + features,
                                  center_features.data() + features,
                                  knn_idx.data() + b * rows,
                                  queries,
                                  neighbours,
                                  matrices,
                                  points,
                                  size,
                                  pitch};
    if (grad_scores) {
      T* const to = grad_scores->data() + b * rows * matrices;
      context.ParallelFor(rows, GrainFor(of_row), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) cloud.ScoresBackward(row, to + row * matrices);
      });
    }
    if (grad_points) {
      constexpr int64_t kAhead = 8;
      by_point.Group(rows, [&](int64_t row) { return cloud.PointOf(row); });
      const auto add = [&](int64_t point, float* to) {
        for (int64_t i = by_point.begin(point); i < by_point.end(point); ++i) {
          if (i + kAhead < by_point.count()) cloud.Prefetch(by_point.order()[i + kAhead]);
          cloud.AddNeighbour(by_point.order()[i], 1, to);
        }
      };
      FeaturesBackward(context, cloud, grain, sums.data(), add, grad_points->data() + features);
    }
    if (grad_centers) {
      by_center.Group(queries, [&](int64_t query) { return cloud.CenterOf(query); });
      const auto add = [&](int64_t center, float* to) {
        for (int64_t i = by_center.begin(center); i < by_center.end(center); ++i) {
          const int64_t first = by_center.order()[i] * neighbours;
          for (int64_t row = first; row < first + neighbours; ++row) {
            if (cloud.IsPoint(cloud.index[row])) cloud.AddNeighbour(row, -1, to);
          }
        }
      };
      FeaturesBackward(context, cloud, grain, sums.data(), add, grad_centers->data() + features);
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(AssignScoreWithkBackward, AssignScoreWithkBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32,
                   BF16I64);
}  // namespace polyop
#endif
