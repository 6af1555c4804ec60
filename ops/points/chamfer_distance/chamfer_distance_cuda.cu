// SPDX-License-Identifier: Apache-2.0
#include "ops/points/chamfer_distance/chamfer_distance.h"
#include "ops/points/tiles_cuda.h"

namespace polyop {
namespace {

template <class T>
struct ChamferSearch {
  // The nearest point so far.
  struct State {
    float at[3], max_squared;  // points at a greater squared fp32 distance cannot be nearer
    double squared;
    int64_t row, begin;
  };

  const float* queries;
  BatchRanges batches;
  T* dist;
  int32_t* idx;

  POLYOP_HD PointRange Start(int64_t q, State& state) const {
    const PointRange range = batches.Of(q);
    for (int a = 0; a < 3; ++a) state.at[a] = queries[3 * q + a];
    state.max_squared = INFINITY;
    state.squared = INFINITY;
    state.row = state.begin = range.begin;
    return range;
  }
  POLYOP_HD void Offer(State& state, const float* point, int64_t row) const {
    if (SurelyBeyond(state.at, point, state.max_squared)) return;
    const double squared = SquaredDistance(state.at, point);
    if (!(squared < state.squared)) return;
    state.squared = squared;
    state.row = row;
    state.max_squared = static_cast<float>(squared * (1 + 1e-7));
  }
  POLYOP_HD void Finish(State& state, int64_t q) const {
    dist[q] = FromFloat<T>(static_cast<float>(state.squared));
    idx[q] = static_cast<int32_t>(state.row - state.begin);
  }
};

// Converts points to rows of 3 floats; the third is 0 if points have two coordinates.
template <class T>
Status MakeRows(const CudaContext& cuda, Tensor<const T, 3> points, float* rows) {
  const T* const from = points.data();
  const int64_t coordinates = points.dim(2);
  return ForEach(cuda, points.dim(0) * points.dim(1), [=] POLYOP_DEVICE(int64_t i) {
    for (int64_t a = 0; a < 3; ++a) rows[3 * i + a] = a < coordinates ? ToFloat(from[coordinates * i + a]) : 0;
  });
}

template <class T>
Status ChamferDistanceCuda(const ChamferDistance&, const CudaContext& cuda, Tensor<const T, 3> xyz1,
                           Tensor<const T, 3> xyz2, Tensor<T, 2> dist1, Tensor<T, 2> dist2, Tensor<int32_t, 2> idx1,
                           Tensor<int32_t, 2> idx2) {
  float* const first = cuda.Allocate<float>(3 * dist1.size());
  float* const second = cuda.Allocate<float>(3 * dist2.size());
  POLYOP_RETURN_IF_ERROR(MakeRows(cuda, xyz1, first));
  POLYOP_RETURN_IF_ERROR(MakeRows(cuda, xyz2, second));
  const int64_t n = xyz1.dim(1), m = xyz2.dim(1);
  POLYOP_RETURN_IF_ERROR(ForTiles(cuda, static_cast<const float*>(second), dist2.size(), dist1.size(),
                                  ChamferSearch<T>{first, BatchRanges(m, n), dist1.data(), idx1.data()}));
  return ForTiles(cuda, static_cast<const float*>(first), dist1.size(), dist2.size(),
                  ChamferSearch<T>{second, BatchRanges(n, m), dist2.data(), idx2.data()});
}

POLYOP_CUDA_KERNELS(ChamferDistance, ChamferDistanceCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
