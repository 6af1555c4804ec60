// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes3d/roiaware_pool3d/roiaware_pool3d_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/boxes3d/roiaware_pool3d/cell_keys-inl.h"
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using CellTag = hn::CappedTag<float, 16>;

// Some channels of the features: a vector, or less at the end.
template <class T>
struct ChannelSlice {
  const T* features;
  float* sums;  // gradients of the features
  int64_t pitch;
  size_t width;

  HWY_INLINE hn::Vec<CellTag> Load(CellKey key) const {
    return LoadFloatN(CellTag(), features + PointOfKey(key) * pitch, width);
  }
  HWY_INLINE void Add(CellKey key, hn::Vec<CellTag> grad) const {
    float* const to = sums + PointOfKey(key) * pitch;
    hn::StoreN(hn::Add(hn::LoadN(CellTag(), to, width), grad), CellTag(), to, width);
  }
};

// Spreads the gradient of a cell's average over its points.
template <class T>
void AddAverage(std::span<const CellKey> keys, const ChannelSlice<T>& slice, hn::Vec<CellTag> grad) {
  grad = hn::Div(grad, hn::Set(CellTag(), static_cast<float>(keys.size())));
  for (const CellKey key : keys) slice.Add(key, grad);
}

// Gives the gradient of each channel to the first of the cell's largest features.
template <class T>
void AddMaximum(std::span<const CellKey> keys, const ChannelSlice<T>& slice, hn::Vec<CellTag> grad) {
  const CellTag d;
  const hn::RebindToSigned<CellTag> di;
  auto maximum = hn::Set(d, NAN);  // no value yet
  auto at = hn::Set(di, -1);
  for (size_t k = 0; k < keys.size(); ++k) {
    const auto v = slice.Load(keys[k]);
    const auto kept = hn::Or(hn::IsNaN(v), hn::Le(v, maximum));
    maximum = hn::IfThenElse(kept, maximum, v);
    at = hn::IfThenElse(hn::RebindMask(di, kept), at, hn::Set(di, static_cast<int32_t>(k)));
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    const auto here = hn::Eq(at, hn::Set(di, static_cast<int32_t>(k)));
    if (!hn::AllFalse(di, here)) slice.Add(keys[k], hn::IfThenElseZero(hn::RebindMask(d, here), grad));
  }
}

// The points in the cells of a few boxes are found box by box. Then tasks own some channels of the features: no two
// threads write to the same address, and every feature gets its gradients in the order of the boxes.
template <class T>
Status RoiawarePool3dBackwardCpu(const RoiawarePool3dBackward& op, const Context& context,
                                 Tensor<const T, 5> grad_pooled, Tensor<const T, 2> rois, Tensor<const T, 2> points,
                                 Tensor<const T, 2> features, Tensor<T, 2> grad_features) {
  constexpr int64_t kMaxKeys = 4 << 20;
  const int64_t count = points.dim(0), channels = features.dim(1), boxes = rois.dim(0);
  const int64_t row = op.out_size[0] * op.out_size[1] * op.out_size[2] * channels;
  const PointColumns<T> columns(context, Tensor<const T, 3>(points.data(), {1, count, 3}));
  POLYOP_RETURN_IF_ERROR(columns.Read(context));
  const int64_t at_once = std::clamp<int64_t>(kMaxKeys / std::max<int64_t>(count, 1), 1, Context::kMaxTasks);
  const Scratch<CellKey> memory = context.Allocate<CellKey>(std::min(at_once, boxes) * count);
  const Scratch<float> wide = context.Allocate<float>(std::is_same_v<T, float> ? 0 : features.size());
  if (!memory || !wide) return Internal("out of memory: scratch for ", count, " points");
  float* sums = wide.data();
  if constexpr (std::is_same_v<T, float>) sums = grad_features.data();
  context.ParallelFor(features.size(), 1 << 14,
                      [&](int64_t begin, int64_t end) { std::fill(sums + begin, sums + end, 0.0f); });

  const int64_t lanes = static_cast<int64_t>(hn::Lanes(CellTag())), slices = (channels + lanes - 1) / lanes;
  int64_t inside[Context::kMaxTasks];
  for (int64_t first = 0; first < boxes; first += at_once) {
    const int64_t some = std::min(at_once, boxes - first);
    context.ParallelFor(some, GrainFor(0.7 * static_cast<double>(count)), [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t b = begin; b < end; ++b) {
        const BoxCells cells =
            BoxCells::Of(rois.data() + 7 * (first + b), op.out_size[0], op.out_size[1], op.out_size[2]);
        inside[b] = FindCellKeys(cells, columns, points.data(), memory.data() + b * count);
      }
    });
    context.ParallelFor(slices, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t c = begin * lanes; c < std::min(end * lanes, channels); c += lanes) {
        const auto width = static_cast<size_t>(std::min(lanes, channels - c));
        const ChannelSlice<T> slice{features.data() + c, sums + c, channels, width};
        for (int64_t b = 0; b < some; ++b) {
          const T* const grads = grad_pooled.data() + (first + b) * row + c;
          const std::span<const CellKey> keys(memory.data() + b * count, static_cast<size_t>(inside[b]));
          ForEachCell(keys, op.max_pts_per_voxel - 1, [&](int64_t cell, std::span<const CellKey> taken) HWY_ATTR {
            const auto grad = LoadFloatN(CellTag(), grads + cell * channels, width);
            if (op.mode == RoiawarePool3d::Mode::kAvg) {
              AddAverage(taken, slice, grad);
            } else {
              AddMaximum(taken, slice, grad);
            }
          });
        }
      }
    });
  }
  if constexpr (!std::is_same_v<T, float>) {
    context.ParallelFor(features.size(), 1 << 14, [&](int64_t begin, int64_t end) HWY_ATTR {
      NarrowRow(sums + begin, end - begin, grad_features.data() + begin);
    });
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(RoiawarePool3dBackward, RoiawarePool3dBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
