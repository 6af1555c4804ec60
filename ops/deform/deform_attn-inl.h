// SPDX-License-Identifier: Apache-2.0
// Deformable attention on the CPU: sums weighted bilinear samples of several levels for every query and head.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_DEFORM_DEFORM_ATTN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_DEFORM_DEFORM_ATTN_INL_H_
#undef POLYOP_OPS_DEFORM_DEFORM_ATTN_INL_H_
#else
#define POLYOP_OPS_DEFORM_DEFORM_ATTN_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/deform/attn_taps-inl.h"
#include "ops/deform/sample_levels.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes the (query, head) pairs of a task. While the pixels of one pair are prefetched, those of the previous pair
// are summed.
template <class T, class Locate, class To>
class AttnSums {
 public:
  // Scratch elements per task.
  static int64_t PixelsFor(int64_t samples) { return 2 * Taps(samples); }
  static int64_t FloatsFor(int64_t samples) { return 2 * Taps(samples) + 3 * WithVector(samples); }

  AttnSums(const SampleLevels& levels, const Locate& locate, int32_t* pixels, float* floats, int64_t depth, To* output,
           const Requantize<To>& codes)
      : levels_(levels),
        locate_(locate),
        found_{{pixels, floats}, {pixels + Taps(levels.samples()), floats + Taps(levels.samples())}},
        depth_(depth),
        output_(output),
        codes_(codes) {
    float* const positions = floats + 2 * Taps(levels.samples());
    const int64_t room = WithVector(levels.samples());
    positions_ = {positions, positions + room, positions + 2 * room};
  }

  // Adds a pair. Pixel p of its head is at value + p * stride.
  HWY_INLINE void Add(int64_t pair, const T* value, int64_t stride) {
    locate_(pair, positions_);
    found_[pair_count_ % 2].Find(levels_, positions_, value, stride, depth_);
    Finish();
    last_ = pair;
    ++pair_count_;
  }
  // Sums the last pair.
  HWY_INLINE void Finish() {
    if (last_ >= 0) found_[(pair_count_ + 1) % 2].Sum(depth_, output_ + last_ * depth_, codes_);
    last_ = -1;
  }

 private:
  static int64_t WithVector(int64_t samples) {
    return samples + static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  }
  static int64_t Taps(int64_t samples) { return WithVector(AttnTaps<T>::RoomFor(samples)); }

  const SampleLevels& levels_;
  const Locate& locate_;
  AttnTaps<T> found_[2];
  AttnPositions positions_;
  const int64_t depth_;
  To* const output_;
  const Requantize<To>& codes_;
  int64_t pair_count_ = 0, last_ = -1;
};

// Returns whether to copy each head's pixels to contiguous memory first. Interleaved with those of other heads, they
// occupy as many pages and cache sets as all heads together. The copy pays if pixels are read several times and do not
// fit the caches.
template <class T>
bool CopiesHeads(const Tensor<const T, 4>& value, int64_t reads) {
  constexpr int64_t kReadsOfPixel = 8, kBytes = 1 << 20;
  return value.dim(2) > 1 && reads >= kReadsOfPixel * value.dim(1) &&
         value.size() / value.dim(0) * static_cast<int64_t>(sizeof(T)) > kBytes;
}

/// Computes output[N, Q, M, D] from value[N, S, M, D]. locate(pair, positions) sets the positions and weights of the
/// samples of pair (n * Q + q) * M + m. The sums are rounded to To.
///
/// An item of the parallel loop is a query with all heads, or with one head if heads are copied. A task has memory for
/// the taps of two pairs. The lanes of a vector are samples while the taps are found, then the channels of a head.
template <class T, class Locate, class To>
Status DeformAttn(const Context& context, const Tensor<const T, 4>& value, const SampleLevels& levels, int64_t queries,
                  const Locate& locate, To* output, const Requantize<To>& codes = {}) {
  using Sums = AttnSums<T, Locate, To>;
  const int64_t spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3), images = value.dim(0);
  const int64_t samples = levels.samples(), image = spatial * heads * depth;
  const bool copies = CopiesHeads(value, 4 * samples * queries);
  const double nanoseconds = static_cast<double>(samples) * (4 + 0.2 * static_cast<double>(depth));
  const int64_t items = copies ? queries : images * queries,
                grain = GrainFor(copies ? nanoseconds : nanoseconds * heads);
  const int64_t tasks = Context::NumTasks(items, grain);
  const Scratch<int32_t> pixels = context.Allocate<int32_t>(tasks * Sums::PixelsFor(samples));
  const Scratch<float> floats = context.Allocate<float>(tasks * Sums::FloatsFor(samples));
  const Scratch<T> head = context.Allocate<T>(copies ? spatial * depth : 0);
  if (!pixels || !floats || !head) return Internal("out of memory: scratch for ", samples, " samples");
  const auto sums_of = [&](int64_t task) HWY_ATTR {
    return Sums(levels, locate, pixels.data() + task * Sums::PixelsFor(samples),
                floats.data() + task * Sums::FloatsFor(samples), depth, output, codes);
  };
  if (!copies) {
    context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
      Sums sums = sums_of(task);
      for (int64_t item = begin; item < end; ++item) {
        const T* const first = value.data() + item / queries * image;
        for (int64_t m = 0; m < heads; ++m) {
          // A value without pixels has no taps and may be null.
          sums.Add(item * heads + m, spatial > 0 ? first + m * depth : nullptr, heads * depth);
        }
      }
      sums.Finish();
    });
    return Status::Ok();
  }
  for (int64_t of = 0; of < images * heads; ++of) {
    const int64_t n = of / heads, m = of % heads;
    const T* const from = value.data() + n * image + m * depth;
    context.ParallelFor(spatial, GrainFor(0.2 * static_cast<double>(depth)), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) std::copy_n(from + p * heads * depth, depth, head.data() + p * depth);
    });
    context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
      Sums sums = sums_of(task);
      for (int64_t q = begin; q < end; ++q) sums.Add((n * queries + q) * heads + m, head.data(), depth);
      sums.Finish();
    });
  }
  return Status::Ok();
}

/// DeformAttn with the given weights, at normalised locations: 0 to 1 across a level.
template <class T, class I>
Status DeformAttnAtLocations(const Context& context, const Tensor<const T, 4>& value, const Tensor<const I, 2>& shapes,
                             const Tensor<const I, 1>& starts, const Tensor<const T, 6>& locations, const T* weights,
                             T* output) {
  const SampleLevels levels(context, starts.dim(0), locations.dim(4));
  POLYOP_RETURN_IF_ERROR(levels.Read(value.dim(1), shapes, starts));
  const int64_t heads = value.dim(2), pairs = value.dim(0) * locations.dim(1) * heads;
  const auto locate = [&](int64_t pair, const AttnPositions& positions)
                          HWY_ATTR { SetSamples(levels, locations.data(), weights, pair, pairs, heads, positions); };
  return DeformAttn<T>(context, value, levels, locations.dim(1), locate, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
