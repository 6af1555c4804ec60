// SPDX-License-Identifier: Apache-2.0
// Gradients of BEV pooling on the CPU. Compiled once per instruction set; include it from a kernel file.

// Outside of the guards because Highway redefines its macros for each target.
#include "kernels/cpu/float_sums-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/bev/bev_pool-inl.h"

#ifndef POLYOP_OPS_BEV_BEV_POOL_BACKWARD_INL_H_
#define POLYOP_OPS_BEV_BEV_POOL_BACKWARD_INL_H_

#include "kernels/cpu/items_by_target.h"
#include "kernels/cpu/prefetch.h"
#include "ops/bev/bev_entries.h"

namespace polyop {

/// A rank of an interval: the cell that it is summed into and the index of its depth.
struct BevEntry {
  int32_t cell, depth;
};

}  // namespace polyop
#endif  // POLYOP_OPS_BEV_BEV_POOL_BACKWARD_INL_H_

#if defined(POLYOP_OPS_BEV_BEV_POOL_BACKWARD_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BEV_BEV_POOL_BACKWARD_TARGET_H_
#undef POLYOP_OPS_BEV_BEV_POOL_BACKWARD_TARGET_H_
#else
#define POLYOP_OPS_BEV_BEV_POOL_BACKWARD_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The gradients of one call. A depth usually belongs to the pixel of its rank. Then the thread that owns the pixel
/// owns the depth, too. The gradients of other depths are added afterwards.
template <class T>
struct BevPoolGradients {
  const T* grad_bev;
  const T* depth;
  const T* feat;
  int64_t channels, depths, plane, pixels;  // `plane` pixels in each of the images
  const FloatSums<T>& depth_sums;
  const FloatSums<T>& feat_sums;

  bool OwnsDepth(int64_t pixel, int64_t index) const {
    const int64_t image = pixel / plane, in_image = index - image * depths * plane;
    return in_image >= 0 && in_image < depths * plane &&
           static_cast<uint32_t>(in_image) % static_cast<uint32_t>(plane) ==
               static_cast<uint32_t>(pixel - image * plane);
  }

  // Adds the entries of pixels [begin, end). `products` gets the scalar products of entries whose depths are not owned.
  // Returns whether there are some.
  template <bool kWithSum, bool kWithDot>
  bool AddPixels(const ItemsByTarget& by_pixel, const BevEntry* entries, int64_t begin, int64_t end, float* features,
                 float* products) const {
    constexpr int64_t kAhead = 8;
    bool all_owned = true;
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int64_t first = by_pixel.begin(pixel), last = by_pixel.end(pixel);
      if (first == last) continue;
      const float* const own = kWithDot ? AsFloats(feat + pixel * channels, channels, features) : nullptr;
      float* const sum = kWithSum ? feat_sums.data() + pixel * channels : nullptr;
      for (int64_t i = first; i < last; ++i) {
        // Entries, rows and depths are at random positions.
        if (i + 2 * kAhead < by_pixel.count()) hwy::Prefetch(entries + by_pixel.order()[i + 2 * kAhead]);
        if (i + kAhead < by_pixel.count()) {
          const BevEntry& later = entries[by_pixel.order()[i + kAhead]];
          PrefetchRow(grad_bev + later.cell * channels, channels);
          hwy::Prefetch(depth + later.depth);
          if constexpr (kWithDot) hwy::Prefetch(depth_sums.data() + later.depth);
        }
        const int32_t item = by_pixel.order()[i];
        const BevEntry& entry = entries[item];
        const T* const row = grad_bev + entry.cell * channels;
        const float weight = ToFloat(depth[entry.depth]);
        const float product = weight != 0 ? AddRow<kWithSum, kWithDot>(row, own, weight, channels, sum)
                                          : AddRow<false, kWithDot>(row, own, weight, channels, sum);
        if constexpr (kWithDot) {
          if (OwnsDepth(pixel, entry.depth)) {
            depth_sums.data()[entry.depth] += product;
          } else {
            products[item] = product;
            all_owned = false;
          }
        }
      }
    }
    return !all_owned;
  }
};

template <class Types>
Status PoolBevBackward(const typename Types::Op&, const Context& context,
                       Tensor<const typename Types::T, Types::kRank> grad_bev, Tensor<const typename Types::T, 4> depth,
                       Tensor<const typename Types::T, 4> feat, Tensor<const typename Types::I, 1> ranks_depth,
                       Tensor<const typename Types::I, 1> ranks_feat, Tensor<const typename Types::I, 1> ranks_bev,
                       Tensor<const typename Types::I, 1> starts, Tensor<const typename Types::I, 1> lengths,
                       std::optional<Tensor<typename Types::T, 4>> grad_depth,
                       std::optional<Tensor<typename Types::T, 4>> grad_feat) {
  using T = typename Types::T;
  using I = typename Types::I;
  const int64_t channels = feat.dim(3), pixels = feat.dim(0) * feat.dim(1) * feat.dim(2);
  if (channels == 0) {  // the extents of an empty view may be huge
    std::fill_n(grad_depth->data(), depth.size(), FromFloat<T>(0));
    return Status::Ok();
  }
  const int64_t cells =
      grad_bev.dim(Types::kRank - 2) * grad_bev.dim(Types::kRank - 3) * (Types::kRank == 5 ? grad_bev.dim(1) : 1);
  if (std::max({depth.size(), pixels, cells}) > INT32_MAX) {
    return InvalidArgument("expected at most ", INT32_MAX, " depths, pixels and cells, got ", depth.size(), ", ",
                           pixels, " and ", cells);
  }
  const BevIntervals<I> intervals{starts.data(), lengths.data(), starts.dim(0), ranks_bev.dim(0)};
  const Scratch<int32_t> owner = context.Allocate<int32_t>(cells);
  if (!owner) return Internal("out of memory: ", cells, " cells");
  POLYOP_RETURN_IF_ERROR(FindRankOwners(context, intervals, ranks_depth, ranks_feat, ranks_bev, depth.size(), pixels,
                                        cells, owner.data()));
  const FloatSums<T> depth_sums(context, grad_depth ? grad_depth->data() : nullptr, depth.size());
  const FloatSums<T> feat_sums(context, grad_feat ? grad_feat->data() : nullptr, feat.size());
  const IntervalGroups groups(context, intervals, owner.data(), cells);
  const int64_t max_entries = groups.max_entries();
  const double nanoseconds = (5 + 0.1 * static_cast<double>(channels)) * static_cast<double>(max_entries) /
                             static_cast<double>(std::max<int64_t>(pixels, 1));
  const int64_t tasks = Context::NumTasks(pixels, GrainFor(nanoseconds));
  const Scratch<BevEntry> entries = context.Allocate<BevEntry>(max_entries);
  const Scratch<int32_t> pixel_of = context.Allocate<int32_t>(max_entries);
  const Scratch<float> products = context.Allocate<float>(grad_depth ? max_entries : 0);
  const Scratch<float> rows = context.Allocate<float>(std::is_same_v<T, float> ? 0 : tasks * channels);
  const Scratch<bool> some_left = context.Allocate<bool>(tasks);
  ItemsByTarget by_pixel(context, max_entries, pixels);
  if (!depth_sums || !feat_sums || !groups || !entries || !pixel_of || !products || !rows || !some_left || !by_pixel) {
    return Internal("out of memory: gradients of ", pixels, " pixels of ", channels, " channels");
  }
  const BevPoolGradients<T> gradients{grad_bev.data(),           depth.data(), feat.data(), channels, depth.dim(1),
                                      feat.dim(1) * feat.dim(2), pixels,       depth_sums,  feat_sums};
  groups.ForEach(intervals, owner.data(), cells, [&](std::span<const IntervalPart> parts, int64_t count) {
    context.ParallelFor(static_cast<int64_t>(parts.size()), 256, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const IntervalPart& part = parts[static_cast<size_t>(p)];
        for (int64_t k = 0; k < part.count; ++k) {
          entries[part.entry + k] = {static_cast<int32_t>(part.cell),
                                     static_cast<int32_t>(ranks_depth[part.first + k])};
          pixel_of[part.entry + k] = static_cast<int32_t>(ranks_feat[part.first + k]);
        }
      }
    });
    by_pixel.Group(count, [&](int64_t e) { return pixel_of[e]; });
    std::fill_n(some_left.data(), tasks, false);
    context.ParallelFor(pixels, GrainFor(nanoseconds), [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
      float* const row = rows.data() + (std::is_same_v<T, float> ? 0 : task * channels);
      const auto add = [&](auto with_sum, auto with_dot) HWY_ATTR {
        return gradients.template AddPixels<with_sum(), with_dot()>(by_pixel, entries.data(), begin, end, row,
                                                                    products.data());
      };
      constexpr std::true_type kWith;
      constexpr std::false_type kWithout;
      some_left[task] = !depth_sums.exists() ? add(kWith, kWithout)
                        : feat_sums.exists() ? add(kWith, kWith)
                                             : add(kWithout, kWith);
    });
    const bool any_left = std::any_of(some_left.data(), some_left.data() + tasks, [](bool some) { return some; });
    for (int64_t e = 0; any_left && e < count; ++e) {
      if (!gradients.OwnsDepth(pixel_of[e], entries[e].depth)) depth_sums.data()[entries[e].depth] += products[e];
    }
  });
  depth_sums.Finish();
  feat_sums.Finish();
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
