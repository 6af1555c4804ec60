// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/atomic_count.h"
#include "kernels/cuda/items_by_target.h"
#include "kernels/cuda/reduce_rows_backward.h"
#include "ops/voxels/dynamic_scatter/dynamic_scatter_backward.h"

namespace polyop {
namespace {

// Each point gets the gradient of its voxel, divided by the number of the voxel's points if `counts` is not null.
template <class T>
Status SpreadToPointsCuda(const CudaContext& cuda, const T* grad, const int32_t* voxel_of, const int64_t* counts,
                          int64_t voxels, const Tensor<T, 2>& grad_feats) {
  T* const to = grad_feats.data();
  const Divider by_channels(grad_feats.dim(1));
  return ForEach(cuda, grad_feats.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    const int64_t v = voxel_of[by_channels.Split(i, &c)];
    const bool inside = v >= 0 && v < voxels;
    const int64_t count = inside && counts != nullptr ? counts[v] : 1;
    to[i] = inside ? ShareOfGradient(grad[v * by_channels.divisor() + c], count) : FromFloat<T>(0);
  });
}

template <class T, class I>
Status DynamicScatterBackwardCuda(const DynamicScatterBackward& op, const CudaContext& cuda, Tensor<const T, 2> grad,
                                  Tensor<const T, 2> feats, Tensor<const I, 2>, Tensor<const T, 2> voxel_feats,
                                  Tensor<const int32_t, 1> point2voxel, Tensor<T, 2> grad_feats) {
  const int64_t points = feats.dim(0), voxels = voxel_feats.dim(0), channels = feats.dim(1);
  const int32_t* const voxel_of = point2voxel.data();
  if (op.reduce_type == DynamicScatter::Reduce::kSum) {
    return SpreadToPointsCuda<T>(cuda, grad.data(), voxel_of, nullptr, voxels, grad_feats);
  }
  if (op.reduce_type == DynamicScatter::Reduce::kMean) {
    // Counting needs no order, unlike the extremes below: 120,000 additions instead of a sort.
    int64_t* const counts = cuda.Allocate<int64_t>(voxels);
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, voxels, [=] POLYOP_DEVICE(int64_t v) { counts[v] = 0; }));
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, points, [=] POLYOP_DEVICE(int64_t i) {
      const int64_t v = voxel_of[i];
      if (v >= 0 && v < voxels) AtomicIncrement(counts + v);
    }));
    return SpreadToPointsCuda<T>(cuda, grad.data(), voxel_of, counts, voxels, grad_feats);
  }
  ItemsByTargetCuda groups;
  POLYOP_RETURN_IF_ERROR(ItemsByTargetCuda::Group(
      cuda, points, voxels, [=] POLYOP_DEVICE(int64_t i) { return int64_t{voxel_of[i]}; }, &groups));
  const T *const grads = grad.data(), *const from = feats.data(), *const maxima = voxel_feats.data();
  T* const to = grad_feats.data();
  const Divider by_channels(channels);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, points * channels, [=] POLYOP_DEVICE(int64_t i) {
    const int64_t v = voxel_of[by_channels.Quotient(i)];
    if (v < 0 || v >= voxels) to[i] = FromFloat<T>(0);
  }));
  return ForEach(cuda, voxels * channels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    const int64_t v = by_channels.Split(i, &c);
    const auto at = [&](int64_t k) { return groups.items[k] * channels + c; };
    ExtremeOfColumnBackward<true>(groups.begins[v], groups.begins[v + 1], at, from, ToFloat(maxima[i]), grads[i], to);
  });
}

POLYOP_CUDA_KERNELS(DynamicScatterBackward, DynamicScatterBackwardCuda, (float, int32_t), (Half, int32_t),
                    (BFloat16, int32_t), (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
