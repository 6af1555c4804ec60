// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/points/three_interpolate/three_interpolate_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/check_indices.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/points/three_interpolate/three_interpolate.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The three indices and weights of each point, as columns.
struct Corners {
  int32_t* index[3];
  float* weight[3];
};

// Computes out[n], the sum of weight * row[index], for the row of one channel.
template <class T>
void InterpolateRow(const float* row, const Corners& corners, int64_t first, int64_t count, T* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t n = 0; n < count; n += lanes) {
    const size_t left = static_cast<size_t>(std::min(lanes, count - n));
    auto sum = hn::Zero(d);
    for (int k = 0; k < 3; ++k) {
      const int64_t at = first + n;
      const auto index = hn::LoadN(di, corners.index[k] + at, left);  // padding lanes are 0
      const auto weight = hn::LoadN(d, corners.weight[k] + at, left);
      sum = hn::Add(sum, hn::Mul(weight, hn::GatherIndex(d, row, index)));
    }
    if (left == static_cast<size_t>(lanes)) {
      StoreFloat(sum, d, out + n);
    } else {
      StoreFloatN(sum, d, out + n, left);
    }
  }
}

template <class Types, class T = typename Types::Real>
Status ThreeInterpolateCpu(const ThreeInterpolate&, const Context& context, Tensor<const T, 3> features,
                           Tensor<const typename Types::Int, 3> idx, Tensor<const T, 3> weight,
                           Tensor<T, 3> interpolated) {
  const int64_t channels = features.dim(1), columns = features.dim(2), count = idx.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx.data(), idx.size(), columns, "a column of 'features'"));
  const int64_t points = idx.dim(0) * count, rows = idx.dim(0) * channels;
  const Scratch<int32_t> indices = context.Allocate<int32_t>(3 * points);
  const Scratch<float> weights = context.Allocate<float>(3 * points);
  const int64_t grain = GrainFor(2.0 * static_cast<double>(count) + 0.2 * static_cast<double>(columns));
  constexpr bool kWidens = !std::is_same_v<T, float>;
  if (!indices || !weights) return Internal("out of memory: ", points, " points");
  Corners corners;
  for (int k = 0; k < 3; ++k) {
    corners.index[k] = indices.data() + k * points;
    corners.weight[k] = weights.data() + k * points;
  }
  context.ParallelFor(points, GrainFor(3.0), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t n = begin; n < end; ++n) {
      for (int k = 0; k < 3; ++k) {
        corners.index[k][n] = static_cast<int32_t>(idx[3 * n + k]);
        corners.weight[k][n] = ToFloat(weight[3 * n + k]);
      }
    }
  });
  const auto interpolate = [&](float* widened, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t r = begin; r < end; ++r) {
      const float* const row = AsFloats(features.data() + r * columns, columns, widened);
      InterpolateRow(row, corners, r / channels * count, count, interpolated.data() + r * count);
    }
  };
  if (context.ParallelForWithScratch<float>(rows, grain, kWidens ? columns : 0, interpolate)) return Status::Ok();
  return Internal("out of memory: ", columns, " columns");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ThreeInterpolate, ThreeInterpolateCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
