// Gradients of deformable attention on the CPU. Compiled once per instruction set; include it from a kernel file.
//
// A task owns one head of one image: no two threads write the same values. It accumulates the gradients of the head's
// values in contiguous memory, where it also has a copy of the values. With few heads, tasks own some of the queries,
// and their sums are added in the end.
#if defined(POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_BACKWARD_INL_H_
#undef POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_BACKWARD_INL_H_
#else
#define POLYOP_FAMILIES_DEFORM_ATTN_DEFORM_ATTN_BACKWARD_INL_H_
#endif

#include <algorithm>

#include "families/deform_attn/attn_taps-inl.h"
#include "families/deform_attn/sample_levels.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose-inl.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The values of one head and their gradients. Pixel p is at p * stride; vectors of a pixel are whole.
struct HeadPixels {
  const float* value;  // not read if there are no gradients of samples
  float* grad;         // null: no gradients of values
  int64_t stride;
  int64_t width;  // channels, a multiple of the vector length

  HWY_INLINE void Prefetch(int64_t pixel, bool reads_value) const {
    for (int64_t c = 0; c < std::min<int64_t>(width, 32); c += 16) {
      if (reads_value) hwy::Prefetch(value + pixel * stride + c);
      if (grad != nullptr) hwy::Prefetch(grad + pixel * stride + c);
    }
  }
};

// Adds the lanes of a vector in groups of four.
template <class D>
HWY_INLINE hn::Vec<QuadTag> FoldToQuad(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return FoldToQuad(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// The samples of one query and head: their taps, and the gradients with respect to positions and weights.
class AttnSamplesBackward {
 public:
  // Scratch elements.
  static int64_t IntegersFor(int64_t samples) { return 2 * Taps(samples); }
  static int64_t FloatsFor(int64_t samples) { return Taps(samples) + 3 * Room(samples) + 4 * (Room(samples) + 1); }

  AttnSamplesBackward(int64_t samples, int32_t* integers, float* floats)
      : pixels_(integers), slots_(integers + Taps(samples)), weights_(floats), dots_(floats + Taps(samples)) {
    float* const positions = dots_ + 4 * (Room(samples) + 1);
    positions_ = {positions, positions + Room(samples), positions + 2 * Room(samples)};
  }

  const AttnPositions& positions() const { return positions_; }

  // Finds the taps of positions(), and prefetches their pixels.
  HWY_INLINE void Find(const SampleLevels& levels, const HeadPixels& head, bool reads_value) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    count_ = 0;
    for (int64_t i = 0; i < levels.samples(); i += lanes) {
      const auto first_slot = hn::ShiftLeft<2>(hn::Iota(di, static_cast<int32_t>(i)));
      ForEachCorner(levels, positions_, i, [&](int corner, auto mask, auto pixel, auto weight) HWY_ATTR {
        hn::CompressStore(pixel, mask, di, pixels_ + count_);
        hn::CompressStore(hn::Add(first_slot, hn::Set(di, corner)), mask, di, slots_ + count_);
        count_ += static_cast<int64_t>(hn::CompressStore(weight, hn::RebindMask(d, mask), d, weights_ + count_));
      });
    }
    for (int64_t t = 0; t < count_; ++t) head.Prefetch(pixels_[t], reads_value);
    for (int64_t t = count_; t < count_ + 4; ++t) {  // so that taps can be read in groups of four
      pixels_[t] = 0;
      slots_[t] = static_cast<int32_t>(4 * Room(levels.samples()));
    }
  }

  // Adds weight * grad to the pixels. A tap whose weight is 0 touches nothing, even if the gradient is NaN.
  HWY_INLINE void Scatter(const float* grad, const HeadPixels& head) const {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t t = 0; t < count_; ++t) {
      if (weights_[t] == 0) continue;
      const auto weight = hn::Set(d, weights_[t]);
      float* const to = head.grad + pixels_[t] * head.stride;
      for (int64_t c = 0; c < head.width; c += lanes) {
        hn::StoreU(hn::MulAdd(weight, hn::LoadU(d, grad + c), hn::LoadU(d, to + c)), d, to + c);
      }
    }
  }

  // Sets `to` to the gradients with respect to positions, in pixels, and weights. A sample without taps has none.
  HWY_INLINE void Gradients(const SampleLevels& levels, const float* grad, const HeadPixels& head,
                            const AttnPositions& to) const {
    Dots(levels.samples(), grad, head);
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto one = hn::Set(d, 1.0f);
    for (int64_t i = 0; i < levels.samples(); i += lanes) {
      const auto y = hn::LoadU(d, positions_.y + i), x = hn::LoadU(d, positions_.x + i);
      const auto inside = TouchesLevel(y, x, hn::LoadU(di, levels.heights() + i), hn::LoadU(di, levels.widths() + i));
      const auto dy = hn::Sub(y, hn::Floor(y)), dx = hn::Sub(x, hn::Floor(x));
      const auto in_upper = hn::Sub(one, dy), in_left = hn::Sub(one, dx), weight = hn::LoadU(d, positions_.weight + i);
      hn::Vec<decltype(d)> ul, ur, ll, lr;
      hn::LoadInterleaved4(d, dots_ + 4 * i, ul, ur, ll, lr);
      const auto store = [&](auto value, float* at)
                             HWY_ATTR { hn::StoreU(hn::IfThenElseZero(inside, value), d, at + i); };
      const auto upper = hn::MulAdd(in_left, ul, hn::Mul(dx, ur)), lower = hn::MulAdd(in_left, ll, hn::Mul(dx, lr));
      store(hn::MulAdd(in_upper, upper, hn::Mul(dy, lower)), to.weight);
      store(hn::Mul(weight, hn::Sub(lower, upper)), to.y);
      store(hn::Mul(weight, hn::MulAdd(in_upper, hn::Sub(ur, ul), hn::Mul(dy, hn::Sub(lr, ll)))), to.x);
    }
  }

  // Elements for `samples` samples, padded by a vector.
  static int64_t Room(int64_t samples) { return samples + static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }

 private:
  static int64_t Taps(int64_t samples) { return 4 * Room(samples) + 4; }

  // Sets dots_[4 * sample + corner] to the scalar product of the gradient and the corner's pixel; 0 outside.
  HWY_INLINE void Dots(int64_t samples, const float* grad, const HeadPixels& head) const {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    std::fill_n(dots_, 4 * (Room(samples) + 1), 0.0f);
    for (int64_t t = 0; t < count_; t += 4) {
      const float *const p0 = head.value + pixels_[t] * head.stride,
                         *const p1 = head.value + pixels_[t + 1] * head.stride,
                         *const p2 = head.value + pixels_[t + 2] * head.stride,
                         *const p3 = head.value + pixels_[t + 3] * head.stride;
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      for (int64_t c = 0; c < head.width; c += lanes) {
        const auto g = hn::LoadU(d, grad + c);
        s0 = hn::MulAdd(g, hn::LoadU(d, p0 + c), s0);
        s1 = hn::MulAdd(g, hn::LoadU(d, p1 + c), s1);
        s2 = hn::MulAdd(g, hn::LoadU(d, p2 + c), s2);
        s3 = hn::MulAdd(g, hn::LoadU(d, p3 + c), s3);
      }
      hn::Vec<QuadTag> quad[4] = {FoldToQuad(d, s0), FoldToQuad(d, s1), FoldToQuad(d, s2), FoldToQuad(d, s3)};
      Transpose(quad);
      float four[4];
      hn::StoreU(hn::Add(hn::Add(quad[0], quad[1]), hn::Add(quad[2], quad[3])), QuadTag(), four);
      for (int64_t k = 0; k < 4; ++k) dots_[slots_[t + k]] = four[k];
    }
  }

  int32_t *const pixels_, *const slots_;
  float *const weights_, *const dots_;
  AttnPositions positions_;
  int64_t count_ = 0;
};

// Stores the gradients of positions, x and y alternately. With kNormalised, positions are 0 to 1 across a level.
template <bool kNormalised, class T>
HWY_INLINE void StorePositionGrads(const SampleLevels& levels, const AttnPositions& grads, T* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), samples = levels.samples();
  HWY_ALIGN float pairs[2 * hn::MaxLanes(d)];
  for (int64_t i = 0; i < samples; i += lanes) {
    auto x = hn::LoadU(d, grads.x + i), y = hn::LoadU(d, grads.y + i);
    if constexpr (kNormalised) {
      x = hn::Mul(x, hn::ConvertTo(d, hn::LoadU(di, levels.widths() + i)));
      y = hn::Mul(y, hn::ConvertTo(d, hn::LoadU(di, levels.heights() + i)));
    }
    hn::StoreInterleaved2(x, y, d, pairs);
    NarrowRow(pairs, 2 * std::min(lanes, samples - i), to + 2 * i);
  }
}

// How the work is divided into tasks.
struct AttnBackwardSplit {
  bool in_place;   // values are read, and their gradients accumulated, in the tensors
  int64_t blocks;  // of queries, per image and head
  int64_t grain;   // items (an image, a head and a block) per task
  int64_t pitch;   // elements per pixel of a head's copy

  template <class T>
  static AttnBackwardSplit Of(const Tensor<const T, 4>& value, int64_t queries, int64_t samples, bool of_values,
                              bool of_samples) {
    constexpr int64_t kBytes = 64 << 20, kEnoughItems = 8, kReadsOfPixel = 8, kEnoughSamples = 4096;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
    const int64_t spatial = value.dim(1), depth = value.dim(3), items = value.dim(0) * value.dim(2);
    AttnBackwardSplit split;
    split.pitch = (depth + lanes - 1) / lanes * lanes;
    const int64_t copies = (of_values ? 1 : 0) + (of_samples ? 1 : 0);
    const int64_t bytes = std::max<int64_t>(copies * spatial * split.pitch * static_cast<int64_t>(sizeof(float)), 1);
    const int64_t room = std::clamp<int64_t>(kBytes / bytes, 1, Context::kMaxTasks);
    split.in_place = std::is_same_v<T, float> && split.pitch == depth &&
                     (4 * samples * queries < kReadsOfPixel * spatial || room < kEnoughItems / 2);
    split.blocks = 1;
    const bool shared = split.in_place && of_values;  // queries write the same memory
    if (items < kEnoughItems && !shared) {
      const int64_t most =
          std::min({queries, split.in_place ? Context::kMaxTasks : room / items, queries * samples / kEnoughSamples});
      split.blocks = std::clamp<int64_t>(most, 1, (kEnoughItems + items - 1) / items);
    }
    const int64_t total = items * split.blocks, tasks = split.in_place ? Context::kMaxTasks : room;
    split.grain = (total + tasks - 1) / tasks;
    return split;
  }
};

/// Computes gradients of output[N, Q, M, D] of DeformAttn. grad_value [N, S, M, D] may be null. locate(pair, positions)
/// sets the positions and weights of the samples of pair (n * Q + q) * M + m. If `of_samples`, finish(pair, positions,
/// grads) gets the gradients with respect to these; positions are in pixels.
template <class T, class Locate, class Finish>
Status DeformAttnBackward(const Context& context, const T* grad_output, const Tensor<const T, 4>& value,
                          const SampleLevels& levels, int64_t queries, T* grad_value, bool of_samples,
                          const Locate& locate, const Finish& finish) {
  using Samples = AttnSamplesBackward;
  const int64_t images = value.dim(0), spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3);
  const int64_t items = images * heads, samples = levels.samples();
  if (items == 0) return Status::Ok();
  const auto split = AttnBackwardSplit::Of(value, queries, samples, grad_value != nullptr, of_samples);
  const int64_t total = items * split.blocks, tasks = Context::NumTasks(total, split.grain);
  const int64_t head_size = split.in_place ? 0 : spatial * split.pitch;
  const int64_t integers_each = 2 * Samples::IntegersFor(samples);
  const int64_t floats_each = 2 * Samples::FloatsFor(samples) + 3 * Samples::Room(samples) + split.pitch;
  const Scratch<int32_t> integers = context.Allocate<int32_t>(tasks * integers_each);
  const Scratch<float> floats = context.Allocate<float>(tasks * floats_each);
  const Scratch<float> values = context.Allocate<float>(of_samples ? tasks * head_size : 0);
  const Scratch<float> sums = context.Allocate<float>(grad_value != nullptr ? tasks * head_size : 0);
  if (!integers || !floats || !values || !sums) return Internal("out of memory: scratch for ", samples, " samples");
  if (split.in_place && grad_value != nullptr) {
    context.ParallelFor(value.size(), 1 << 16,
                        [&](int64_t begin, int64_t end) { std::fill(grad_value + begin, grad_value + end, T{}); });
  }
  const auto first_of = [&](int64_t of) { return (of / heads * spatial * heads + of % heads) * depth; };

  context.ParallelFor(total, split.grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    int32_t* const ints = integers.data() + task * integers_each;
    float* const reals = floats.data() + task * floats_each;
    Samples found[2] = {Samples(samples, ints, reals),
                        Samples(samples, ints + Samples::IntegersFor(samples), reals + Samples::FloatsFor(samples))};
    float* const grads = reals + 2 * Samples::FloatsFor(samples);
    const int64_t room = Samples::Room(samples);
    const AttnPositions of_positions{grads, grads + room, grads + 2 * room};
    float* const row = grads + 3 * room;
    std::fill_n(row, split.pitch, 0.0f);
    for (int64_t item = begin; item < end; ++item) {
      const int64_t of = item / split.blocks, block = item % split.blocks, n = of / heads, m = of % heads;
      HeadPixels head{nullptr, nullptr, heads * depth, depth};
      if constexpr (std::is_same_v<T, float>) {
        if (split.in_place) {
          if (of_samples) head.value = value.data() + first_of(of);
          if (grad_value != nullptr) head.grad = grad_value + first_of(of);
        }
      }
      if (!split.in_place) {
        float* const copy = values.data() + task * head_size;
        for (int64_t p = 0; of_samples && p < spatial; ++p) {
          WidenRow(value.data() + first_of(of) + p * heads * depth, depth, copy + p * split.pitch);
          std::fill_n(copy + p * split.pitch + depth, split.pitch - depth, 0.0f);
        }
        head = {copy, grad_value != nullptr ? sums.data() + task * head_size : nullptr, split.pitch, split.pitch};
        if (head.grad != nullptr) std::fill_n(head.grad, head_size, 0.0f);
      }
      const int64_t last = queries * (block + 1) / split.blocks, first = queries * block / split.blocks;
      // While the pixels of one query are prefetched, those of the previous query are read.
      for (int64_t q = first; q <= last; ++q) {
        if (q < last) {
          locate((n * queries + q) * heads + m, found[q % 2].positions());
          found[q % 2].Find(levels, head, of_samples);
        }
        if (q == first) continue;
        const int64_t pair = (n * queries + q - 1) * heads + m;
        const Samples& previous = found[(q - 1) % 2];
        const float* grad = row;
        if constexpr (std::is_same_v<T, float>) {
          if (split.pitch == depth) grad = grad_output + pair * depth;
        }
        if (grad == row) WidenRow(grad_output + pair * depth, depth, row);
        if (of_samples) {
          previous.Gradients(levels, grad, head, of_positions);
          finish(pair, previous.positions(), of_positions);
        }
        if (head.grad != nullptr) previous.Scatter(grad, head);
      }
      if (split.in_place || grad_value == nullptr || split.blocks > 1) continue;
      for (int64_t p = 0; p < spatial; ++p) {
        NarrowRow(head.grad + p * split.pitch, depth, grad_value + first_of(of) + p * heads * depth);
      }
    }
  });
  if (split.blocks == 1 || grad_value == nullptr) return Status::Ok();
  // Each task had one item. Adds the sums of the blocks to those of the first block.
  const double nanoseconds = 0.3 * static_cast<double>(split.pitch * split.blocks);
  context.ParallelFor(items * spatial, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t of = i / spatial, p = i % spatial;
      float* const sum = sums.data() + of * split.blocks * head_size + p * split.pitch;
      for (int64_t b = 1; b < split.blocks; ++b) {
        for (int64_t c = 0; c < depth; ++c) sum[c] += sum[b * head_size + c];
      }
      NarrowRow(sum, depth, grad_value + first_of(of) + p * heads * depth);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
