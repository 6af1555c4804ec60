// SPDX-License-Identifier: Apache-2.0
// Gradients of deformable attention on the CPU. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_DEFORM_DEFORM_ATTN_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_DEFORM_DEFORM_ATTN_BACKWARD_INL_H_
#undef POLYOP_OPS_DEFORM_DEFORM_ATTN_BACKWARD_INL_H_
#else
#define POLYOP_OPS_DEFORM_DEFORM_ATTN_BACKWARD_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/prefetch.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/deform/attn_taps-inl.h"
#include "ops/deform/sample_levels.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The values of one head, or their gradients, to which samples are scattered; the other is null. Pixel p is at
// p * stride; vectors of a pixel are whole.
struct HeadPixels {
  const float* value;
  float* grad;
  int64_t stride;
  int64_t width;  // channels, a multiple of the vector length

  bool scatters() const { return grad != nullptr; }

  // Prefetches 32 channels of pixels; the processor prefetches longer runs automatically.
  HWY_INLINE void Prefetch(const int32_t* pixels, int64_t count) const {
    const float* const first = scatters() ? grad : value;
    const bool two_lines = width > 16;
    for (int64_t t = 0; t < count; ++t) {
      const float* const from = first + pixels[t] * stride;
      hwy::Prefetch(from);
      if (two_lines) hwy::Prefetch(from + 16);
    }
  }
};

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

  // Finds the taps of positions(), for Scatter or for Gradients, and prefetches their pixels.
  HWY_INLINE void Find(const SampleLevels& levels, const HeadPixels& head) {
    if (head.scatters()) {
      FindWeights(levels);
    } else {
      FindSlots(levels);
    }
    head.Prefetch(pixels_, count_);
  }

  // Adds weight * grad to the pixels. A tap whose weight is 0 touches nothing, even if the gradient is NaN.
  HWY_INLINE void Scatter(const float* grad, const HeadPixels& head) const {
    int64_t c = ScatterVectors<4>(grad, head, 0);
    c = ScatterVectors<2>(grad, head, c);
    ScatterVectors<1>(grad, head, c);
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

  // Finds the pixels and weights of taps whose weights are not 0.
  HWY_INLINE void FindWeights(const SampleLevels& levels) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    count_ = 0;
    for (int64_t i = 0; i < levels.samples(); i += lanes) {
      ForEachCorner(levels, positions_, i, [&](int, auto mask, auto pixel, auto weight) HWY_ATTR {
        const auto used = hn::AndNot(hn::Eq(weight, hn::Zero(d)), hn::RebindMask(d, mask));  // also NaN
        hn::CompressStore(pixel, hn::RebindMask(di, used), di, pixels_ + count_);
        count_ += static_cast<int64_t>(hn::CompressStore(weight, used, d, weights_ + count_));
      });
    }
  }

  // Finds the pixels of taps, and the slots of their scalar products.
  HWY_INLINE void FindSlots(const SampleLevels& levels) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    count_ = 0;
    for (int64_t i = 0; i < levels.samples(); i += lanes) {
      const auto first_slot = hn::ShiftLeft<2>(hn::Iota(di, static_cast<int32_t>(i)));
      ForEachCorner(levels, positions_, i, [&](int corner, auto mask, auto pixel, auto) HWY_ATTR {
        hn::CompressStore(pixel, mask, di, pixels_ + count_);
        const auto slot = hn::Add(first_slot, hn::Set(di, corner));
        count_ += static_cast<int64_t>(hn::CompressStore(slot, mask, di, slots_ + count_));
      });
    }
    for (int64_t t = count_; t < count_ + 4; ++t) {  // so that taps can be read in groups of four
      pixels_[t] = 0;
      slots_[t] = static_cast<int32_t>(4 * Room(levels.samples()));
    }
  }

  // Scatters channels from c on, kVectors vectors at a time. Returns the first channel that is left.
  template <int kVectors>
  HWY_INLINE int64_t ScatterVectors(const float* grad, const HeadPixels& head, int64_t c) const {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; c + kVectors * lanes <= head.width; c += kVectors * lanes) {
      hn::Vec<decltype(d)> g[kVectors];
      for (int v = 0; v < kVectors; ++v) g[v] = hn::LoadU(d, grad + c + v * lanes);
      for (int64_t t = 0; t < count_; ++t) {
        const auto weight = hn::Set(d, weights_[t]);
        float* const to = head.grad + pixels_[t] * head.stride + c;
        for (int v = 0; v < kVectors; ++v) {
          hn::StoreU(hn::MulAdd(weight, g[v], hn::LoadU(d, to + v * lanes)), d, to + v * lanes);
        }
      }
    }
    return c;
  }

  // Sets dots_[4 * sample + corner] to the scalar product of the gradient and the corner's pixel; 0 outside.
  HWY_INLINE void Dots(int64_t samples, const float* grad, const HeadPixels& head) const {
    constexpr int kUnroll = 4;
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    std::fill_n(dots_, 4 * (Room(samples) + 1), 0.0f);
    for (int64_t t = 0; t < count_; t += 4) {
      const float *const p0 = head.value + pixels_[t] * head.stride,
                         *const p1 = head.value + pixels_[t + 1] * head.stride,
                         *const p2 = head.value + pixels_[t + 2] * head.stride,
                         *const p3 = head.value + pixels_[t + 3] * head.stride;
      hn::Vec<decltype(d)> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
      const auto add = [&](int64_t c) HWY_ATTR {
        const auto g = hn::LoadU(d, grad + c);
        sums[0] = hn::MulAdd(g, hn::LoadU(d, p0 + c), sums[0]);
        sums[1] = hn::MulAdd(g, hn::LoadU(d, p1 + c), sums[1]);
        sums[2] = hn::MulAdd(g, hn::LoadU(d, p2 + c), sums[2]);
        sums[3] = hn::MulAdd(g, hn::LoadU(d, p3 + c), sums[3]);
      };
      int64_t c = 0;
      for (; c + kUnroll * lanes <= head.width; c += kUnroll * lanes) {
        for (int v = 0; v < kUnroll; ++v) add(c + v * lanes);
      }
      for (; c < head.width; c += lanes) add(c);
      float four[4];
      hn::StoreU(SumsOfLanes(d, sums), QuadTag(), four);
      for (int64_t k = 0; k < 4; ++k) dots_[slots_[t + k]] = four[k];
    }
  }

  int32_t *const pixels_, *const slots_;
  float *const weights_, *const dots_;
  AttnPositions positions_;
  int64_t count_ = 0;
};

// Sets to[i] to from[i], rounded to T, two vectors at a time. GCC replaces a loop that copies single vectors of floats
// by `rep movs`, which takes dozens of cycles to start.
template <class T>
HWY_INLINE void StoreGrads(const float* from, int64_t count, T* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    StoreFloat(hn::LoadU(d, from + i), d, to + i);
    StoreFloat(hn::LoadU(d, from + i + lanes), d, to + i + lanes);
  }
  if (i < count) NarrowRow(from + i, count - i, to + i);
}

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
    StoreGrads(pairs, 2 * std::min(lanes, samples - i), to + 2 * i);
  }
}

// Finds the samples of the queries of one head, and their gradients, for a task.
template <class T, class Locate>
class AttnQueriesBackward {
  using Samples = AttnSamplesBackward;

 public:
  // Scratch elements per task.
  static int64_t IntegersFor(int64_t samples) { return 2 * Samples::IntegersFor(samples); }
  static int64_t FloatsFor(int64_t samples, int64_t pitch) {
    return 2 * Samples::FloatsFor(samples) + 3 * Samples::Room(samples) + pitch;
  }

  // The scratch is that of the task.
  AttnQueriesBackward(const SampleLevels& levels, const Locate& locate, const T* grad_output, int64_t queries,
                      int64_t heads, int64_t depth, int64_t pitch, int32_t* ints, float* floats)
      : levels_(levels),
        locate_(locate),
        grad_output_(grad_output),
        queries_(queries),
        heads_(heads),
        depth_(depth),
        pitch_(pitch),
        found_{{levels.samples(), ints, floats},
               {levels.samples(), ints + Samples::IntegersFor(levels.samples()),
                floats + Samples::FloatsFor(levels.samples())}} {
    const int64_t room = Samples::Room(levels.samples());
    float* const grads = floats + 2 * Samples::FloatsFor(levels.samples());
    grads_ = {grads, grads + room, grads + 2 * room};
    row_ = grads + 3 * room;
    std::fill_n(row_, pitch, 0.0f);
  }

  // Calls visit(pair, samples, grad) for queries [first, last) of a head, `of` = image * heads + head, with the
  // gradient of the head's output. While the pixels of one query are prefetched, those of the previous query are
  // visited.
  template <class Visit>
  HWY_INLINE void ForEach(int64_t of, int64_t first, int64_t last, const HeadPixels& head, const Visit& visit) {
    for (int64_t q = first; q <= last; ++q) {
      const int64_t pair = (of / heads_ * queries_ + q) * heads_ + of % heads_;
      if (q < last) {
        PrefetchRow(grad_output_ + pair * depth_, depth_);
        locate_(pair, found_[q % 2].positions());
        found_[q % 2].Find(levels_, head);
      }
      if (q > first) visit(pair - heads_, found_[(q - 1) % 2], Grad(pair - heads_));
    }
  }

  // Room for the gradients of a query's samples.
  const AttnPositions& grads() const { return grads_; }

 private:
  // Returns the gradient of a pair in whole vectors.
  HWY_INLINE const float* Grad(int64_t pair) {
    if constexpr (std::is_same_v<T, float>) {
      if (pitch_ == depth_) return grad_output_ + pair * depth_;
    }
    WidenRow(grad_output_ + pair * depth_, depth_, row_);
    return row_;
  }

  const SampleLevels& levels_;
  const Locate& locate_;
  const T* const grad_output_;
  const int64_t queries_, heads_, depth_, pitch_;
  Samples found_[2];
  AttnPositions grads_;
  float* row_;
};

// What both passes know of the call.
template <class T, class Locate>
struct AttnBackward {
  using Queries = AttnQueriesBackward<T, Locate>;
  static constexpr int64_t kReadsOfPixel = 8;

  const Context& context;
  const T* grad_output;
  const Tensor<const T, 4>& value;
  const SampleLevels& levels;
  int64_t queries;
  const Locate& locate;

  int64_t spatial() const { return value.dim(1); }
  int64_t heads() const { return value.dim(2); }
  int64_t depth() const { return value.dim(3); }
  int64_t items() const { return value.dim(0) * heads(); }
  // Returns the elements per pixel of a copy of a head: whole vectors.
  int64_t pitch() const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
    return (depth() + lanes - 1) / lanes * lanes;
  }
  int64_t CopyBytes() const { return std::max<int64_t>(spatial() * pitch() * static_cast<int64_t>(sizeof(float)), 1); }
  bool CanWorkInPlace() const { return std::is_same_v<T, float> && pitch() == depth(); }
  bool ReadsPixelsOften() const { return 4 * levels.samples() * queries >= kReadsOfPixel * spatial(); }
  // Returns the first element of a head in a tensor of values.
  int64_t FirstOf(int64_t of) const { return (of / heads() * spatial() * heads() + of % heads()) * depth(); }

  // Computes the gradients of positions and weights. Heads are copied one after the other, so that the copy stays in
  // the caches.
  template <class Finish>
  Status OfSamples(const Finish& finish) const {
    const int64_t samples = levels.samples();
    const bool in_place = CanWorkInPlace() && !ReadsPixelsOften();
    const double nanoseconds = static_cast<double>(samples) * (8 + 0.4 * static_cast<double>(depth()));
    const int64_t total = in_place ? items() * queries : queries, grain = GrainFor(nanoseconds);
    const int64_t tasks = Context::NumTasks(total, grain), ints_each = Queries::IntegersFor(samples);
    const int64_t floats_each = Queries::FloatsFor(samples, pitch());
    const Scratch<int32_t> ints = context.Allocate<int32_t>(tasks * ints_each);
    const Scratch<float> floats = context.Allocate<float>(tasks * floats_each);
    const Scratch<float> copy = context.Allocate<float>(in_place ? 0 : spatial() * pitch());
    if (!ints || !floats || !copy) return Internal("out of memory: scratch for ", samples, " samples");
    const auto queries_of = [&](int64_t task) HWY_ATTR {
      return Queries(levels, locate, grad_output, queries, heads(), depth(), pitch(), ints.data() + task * ints_each,
                     floats.data() + task * floats_each);
    };
    const auto visit = [&](Queries& of_task, int64_t of, int64_t first, int64_t last, const HeadPixels& head) HWY_ATTR {
      of_task.ForEach(of, first, last, head,
                      [&](int64_t pair, const AttnSamplesBackward& found, const float* grad) HWY_ATTR {
                        found.Gradients(levels, grad, head, of_task.grads());
                        finish(pair, found.positions(), of_task.grads());
                      });
    };
    if constexpr (std::is_same_v<T, float>) {
      if (in_place) {
        context.ParallelFor(total, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
          Queries of_task = queries_of(task);
          for (int64_t i = begin; i < end;) {
            const int64_t of = i / queries, stop = std::min(end, (of + 1) * queries);
            visit(of_task, of, i - of * queries, stop - of * queries,
                  {value.data() + FirstOf(of), nullptr, heads() * depth(), depth()});
            i = stop;
          }
        });
        return Status::Ok();
      }
    }
    for (int64_t of = 0; of < items(); ++of) {
      const T* const from = value.data() + FirstOf(of);
      context.ParallelFor(spatial(), GrainFor(0.3 * static_cast<double>(depth())),
                          [&](int64_t begin, int64_t end) HWY_ATTR {
                            for (int64_t p = begin; p < end; ++p) {
                              float* const to = copy.data() + p * pitch();
                              WidenRow(from + p * heads() * depth(), depth(), to);
                              std::fill_n(to + depth(), pitch() - depth(), 0.0f);
                            }
                          });
      context.ParallelFor(queries, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
        Queries of_task = queries_of(task);
        visit(of_task, of, begin, end, {copy.data(), nullptr, pitch(), pitch()});
      });
    }
    return Status::Ok();
  }

  // How the work on the values is divided into tasks.
  struct Split {
    bool in_place;   // gradients are accumulated in the tensor
    int64_t blocks;  // of queries, per image and head
  };
  Split SplitValues() const {
    constexpr int64_t kBytes = 64 << 20, kEnoughItems = 8, kEnoughSamples = 4096;
    const int64_t room = std::max<int64_t>(kBytes / CopyBytes(), 1);
    Split split{CanWorkInPlace() && (!ReadsPixelsOften() || room < kEnoughItems / 2), 1};
    if (items() < kEnoughItems && !split.in_place) {
      const int64_t most = std::min({queries, room / items(), queries * levels.samples() / kEnoughSamples});
      split.blocks = std::clamp<int64_t>(most, 1, (kEnoughItems + items() - 1) / items());
    }
    return split;
  }

  // Computes the gradients of values. An item is a head of an image: no two threads write the same values. With few
  // heads, it is also a block of the queries, and the sums of the blocks are added in the end.
  Status OfValues(T* grad_value) const {
    const Split split = SplitValues();
    const int64_t samples = levels.samples(), total = items() * split.blocks;
    const int64_t head_size = split.in_place ? 0 : spatial() * pitch();
    const int64_t int_bytes = (Queries::IntegersFor(samples) * static_cast<int64_t>(sizeof(int32_t)) + 63) / 64 * 64;
    const int64_t floats = (Queries::FloatsFor(samples, pitch()) + 15) / 16 * 16;
    const int64_t own_sums = split.blocks > 1 ? 0 : head_size;
    const Scratch<float> sums = context.Allocate<float>(split.blocks > 1 ? total * head_size : 0);
    if (!sums) return Internal("out of memory: scratch for ", samples, " samples");
    if (split.in_place) {
      context.ParallelFor(value.size(), 1 << 16,
                          [&](int64_t begin, int64_t end) { std::fill(grad_value + begin, grad_value + end, T{}); });
    }
    const auto write = [&](int64_t of, int64_t p, const float* sum)
                           HWY_ATTR { NarrowRow(sum, depth(), grad_value + FirstOf(of) + p * heads() * depth()); };
    const auto compute = [&](char* memory, int64_t begin, int64_t end) HWY_ATTR {
      auto* const first_float = reinterpret_cast<float*>(memory + int_bytes);
      Queries of_task(levels, locate, grad_output, queries, heads(), depth(), pitch(),
                      reinterpret_cast<int32_t*>(memory), first_float);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t of = item / split.blocks, block = item % split.blocks;
        float* const of_item = split.blocks > 1 ? sums.data() + item * head_size : first_float + floats;
        HeadPixels head{nullptr, of_item, pitch(), pitch()};
        if constexpr (std::is_same_v<T, float>) {
          if (split.in_place) head = {nullptr, grad_value + FirstOf(of), heads() * depth(), depth()};
        }
        if (!split.in_place) std::fill_n(head.grad, head_size, 0.0f);
        of_task.ForEach(of, queries * block / split.blocks, queries * (block + 1) / split.blocks, head,
                        [&](int64_t, const AttnSamplesBackward& found, const float* grad)
                            HWY_ATTR { found.Scatter(grad, head); });
        if (split.in_place || split.blocks > 1) continue;
        for (int64_t p = 0; p < spatial(); ++p) write(of, p, head.grad + p * pitch());
      }
    };
    const int64_t bytes = int_bytes + (floats + own_sums) * static_cast<int64_t>(sizeof(float));
    if (!context.ParallelForWithScratch<char>(total, 1, bytes, compute)) {
      return Internal("out of memory: gradients of ", spatial(), " pixels");
    }
    if (split.blocks == 1) return Status::Ok();
    // Adds the sums of the blocks to those of the first block.
    const double nanoseconds = 0.3 * static_cast<double>(pitch() * split.blocks);
    context.ParallelFor(items() * spatial(), GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t of = i / spatial(), p = i % spatial();
        float* const sum = sums.data() + of * split.blocks * head_size + p * pitch();
        for (int64_t b = 1; b < split.blocks; ++b) {
          for (int64_t c = 0; c < depth(); ++c) sum[c] += sum[b * head_size + c];
        }
        write(of, p, sum);
      }
    });
    return Status::Ok();
  }
};

/// Computes gradients of output[N, Q, M, D] of DeformAttn. grad_value [N, S, M, D] may be null. locate(pair, positions)
/// sets the positions and weights of the samples of pair (n * Q + q) * M + m. If `of_samples`, finish(pair, positions,
/// grads) gets the gradients with respect to these; positions are in pixels.
template <class T, class Locate, class Finish>
Status DeformAttnBackward(const Context& context, const T* grad_output, const Tensor<const T, 4>& value,
                          const SampleLevels& levels, int64_t queries, T* grad_value, bool of_samples,
                          const Locate& locate, const Finish& finish) {
  // In two passes, because the values of a head and their gradients together often exceed the L2 cache.
  const AttnBackward<T, Locate> backward{context, grad_output, value, levels, queries, locate};
  if (backward.items() == 0) return Status::Ok();
  if (of_samples) POLYOP_RETURN_IF_ERROR(backward.OfSamples(finish));
  return grad_value == nullptr ? Status::Ok() : backward.OfValues(grad_value);
}

/// The gradients of DeformAttnAtLocations. Those that are not requested are null.
template <class T, class I>
Status DeformAttnAtLocationsBackward(const Context& context, const T* grad_output, const Tensor<const T, 4>& value,
                                     const Tensor<const I, 2>& shapes, const Tensor<const I, 1>& starts,
                                     const Tensor<const T, 6>& locations, const T* weights, T* grad_value,
                                     T* grad_locations, T* grad_weights) {
  const SampleLevels levels(context, starts.dim(0), locations.dim(4));
  POLYOP_RETURN_IF_ERROR(levels.Read(value.dim(1), shapes, starts));
  const int64_t samples = levels.samples(), heads = value.dim(2), pairs = value.dim(0) * locations.dim(1) * heads;
  const auto locate = [&](int64_t pair, const AttnPositions& positions)
                          HWY_ATTR { SetSamples(levels, locations.data(), weights, pair, pairs, heads, positions); };
  const auto finish = [&](int64_t pair, const AttnPositions&, const AttnPositions& grads) HWY_ATTR {
    if (grad_weights != nullptr) {
      PrefetchLaterQuery(grad_weights, pair, pairs, heads, samples);
      StoreGrads(grads.weight, samples, grad_weights + pair * samples);
    }
    if (grad_locations != nullptr) {
      PrefetchLaterQuery(grad_locations, pair, pairs, heads, samples * 2);
      StorePositionGrads<true>(levels, grads, grad_locations + pair * samples * 2);
    }
  };
  const bool of_samples = grad_locations != nullptr || grad_weights != nullptr;
  return DeformAttnBackward(context, grad_output, value, levels, locations.dim(1), grad_value, of_samples, locate,
                            finish);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
