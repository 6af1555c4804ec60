// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/carafe/carafe_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/feature_maps/carafe/carafe_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using F = hn::ScalableTag<float>;

int64_t WithVectors(int64_t count) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F()));
  return (count + lanes - 1) / lanes * lanes;
}

// Extents, and rows of output pixels with a margin: the windows' positions beyond the image, where rows are 0.
struct Sizes {
  int64_t images;    // and groups
  int64_t channels;  // of a group
  int64_t height, width, scale, kernel, half, out_height, out_width;
  int64_t margin;  // columns before and after a row
  int64_t row;     // elements of a row of whole vectors without margins
  int64_t pitch;   // elements of a row with margins

  Sizes(const Carafe& op, const Shape& features)
      : images(features[0] * op.group_size),
        channels(features[1] / op.group_size),
        height(features[2]),
        width(features[3]),
        scale(static_cast<int64_t>(op.scale_factor)),
        kernel(op.kernel_size),
        half(op.kernel_size / 2),
        out_height(height * scale),
        out_width(width * scale),
        margin(half * scale),
        row(WithVectors(out_width)),
        pitch(row + 2 * margin) {}

  int64_t out_pixels() const { return out_height * out_width; }
  // Columns between an output pixel and the first column of window column `ix` in a row with margins.
  int64_t Shift(int64_t ix) const { return ix * scale; }
  // The columns of output pixels whose window column `ix` is in the image.
  int64_t FirstInside(int64_t ix) const { return std::clamp<int64_t>((half - ix) * scale, 0, out_width); }
  int64_t LastInside(int64_t ix) const { return std::clamp<int64_t>(out_width - (ix - half) * scale, 0, out_width); }
};

template <class T>
void CopyWithMargins(const T* from, const Sizes& s, float* to) {
  std::fill_n(to, s.margin, 0.0f);
  WidenRow(from, s.out_width, to + s.margin);
  std::fill(to + s.margin + s.out_width, to + s.pitch, 0.0f);
}

// Adds to sums[kChannels][s.row] the products of mask rows [kernel][s.row] and gradients [kChannels][grad_step].
template <int kChannels>
HWY_INLINE void AddMasked(const Sizes& s, const float* masks, const float* grads, int64_t grad_step, float* sums) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t u = 0; u < s.row; u += lanes) {
    hn::Vec<F> sum[kChannels];
    for (int c = 0; c < kChannels; ++c) sum[c] = hn::LoadU(d, sums + c * s.row + u);
    for (int64_t ix = 0; ix < s.kernel; ++ix) {
      const auto mask = hn::LoadU(d, masks + ix * s.row + u);
      // The output pixel whose window column ix is here.
      const float* const grad = grads + 2 * s.margin - s.Shift(ix) + u;
      for (int c = 0; c < kChannels; ++c) sum[c] = hn::MulAdd(hn::LoadU(d, grad + c * grad_step), mask, sum[c]);
    }
    for (int c = 0; c < kChannels; ++c) hn::StoreU(sum[c], d, sums + c * s.row + u);
  }
}

// Adds up `scale` neighbouring columns.
template <class T>
HWY_INLINE void ReduceColumns(const float* sums, int64_t width, int64_t scale, float* buffer, T* to) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t x = 0;
  if (scale == 2) {
    for (; x + lanes <= width; x += lanes) {
      hn::Vec<F> even, odd;
      hn::LoadInterleaved2(d, sums + 2 * x, even, odd);
      hn::StoreU(hn::Add(even, odd), d, buffer + x);
    }
  }
  for (; x < width; ++x) {
    float sum = 0;
    for (int64_t i = 0; i < scale; ++i) sum += sums[x * scale + i];
    buffer[x] = sum;
  }
  NarrowRow(buffer, width, to);
}

// A task owns some rows of some channels of the features. For each of these rows and each window row, the output pixels
// of a row add their gradients to the columns of their windows, in the resolution of the output.
template <class T>
Status FeaturesBackward(const Context& context, const Sizes& s, const T* grad_output, const T* masks,
                        T* grad_features) {
  constexpr int64_t kChannels = 16;
  const int64_t blocks = (s.channels + kChannels - 1) / kChannels, band = std::max<int64_t>(8, s.kernel);
  const int64_t bands = (s.height + band - 1) / band, items = s.images * blocks * bands;
  const int64_t grad_rows = std::min(band + 2 * s.half, s.height) * s.scale, grad_step = grad_rows * s.pitch;
  const int64_t floats = kChannels * grad_step + s.kernel * s.row + kChannels * s.row + s.width;
  // `grads` is [16][grad_rows][pitch].
  const auto compute = [&](float* grads, int64_t begin, int64_t end) HWY_ATTR {
    float* const mask_rows = grads + kChannels * grad_step;  // [kernel][row]
    float* const sums = mask_rows + s.kernel * s.row;        // [16][row]
    float* const buffer = sums + kChannels * s.row;          // [width]
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / bands / blocks, first = item / bands % blocks * kChannels;
      const int64_t held = std::min(kChannels, s.channels - first), first_plane = image * s.channels + first;
      const int64_t y_begin = item % bands * band, y_end = std::min(s.height, y_begin + band);
      const int64_t source = std::max<int64_t>(y_begin - s.half, 0), source_end = std::min(s.height, y_end + s.half);
      for (int64_t c = 0; c < held; ++c) {
        for (int64_t r = 0; r < (source_end - source) * s.scale; ++r) {
          CopyWithMargins(grad_output + (first_plane + c) * s.out_pixels() + (source * s.scale + r) * s.out_width, s,
                          grads + c * grad_step + r * s.pitch);
        }
      }
      for (int64_t y = y_begin; y < y_end; ++y) {
        std::fill_n(sums, held * s.row, 0.0f);
        for (int64_t iy = 0; iy < s.kernel; ++iy) {
          const int64_t middle = y - iy + s.half;
          if (middle < 0 || middle >= s.height) continue;
          for (int64_t r = middle * s.scale; r < (middle + 1) * s.scale; ++r) {
            for (int64_t ix = 0; ix < s.kernel; ++ix) {
              const T* const mask =
                  masks + (image * s.kernel * s.kernel + iy * s.kernel + ix) * s.out_pixels() + r * s.out_width;
              float* const row = mask_rows + ix * s.row;
              const int64_t from = s.FirstInside(ix), to = std::max(from, s.LastInside(ix));
              const int64_t at = from + (ix - s.half) * s.scale, count = to - from;
              std::fill_n(row, s.row, 0.0f);
              if (count > 0) WidenRow(mask + from, count, row + at);
            }
            const float* const grad = grads + (r - source * s.scale) * s.pitch;
            int64_t c = 0;
            for (; c + 4 <= held; c += 4) AddMasked<4>(s, mask_rows, grad + c * grad_step, grad_step, sums + c * s.row);
            for (; c < held; ++c) AddMasked<1>(s, mask_rows, grad + c * grad_step, grad_step, sums + c * s.row);
          }
        }
        for (int64_t c = 0; c < held; ++c) {
          ReduceColumns(sums + c * s.row, s.width, s.scale, buffer,
                        grad_features + ((first_plane + c) * s.height + y) * s.width);
        }
      }
    }
  };
  if (context.ParallelForWithScratch<float>(items, 1, floats, compute)) return Status::Ok();
  return Internal("out of memory: ", floats, " elements for some rows");
}

// Sets to[kColumns][s.row] to the products of gradients [channels][s.row] and features [channels][s.pitch], summed over
// the channels, for the window's columns from `ix` on.
template <int kColumns>
HWY_INLINE void SumChannels(const Sizes& s, const float* grads, const float* features, int64_t ix, float* to) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t u = 0; u < s.row; u += lanes) {
    hn::Vec<F> sum[kColumns];
    for (auto& v : sum) v = hn::Zero(d);
    for (int64_t c = 0; c < s.channels; ++c) {
      const auto grad = hn::LoadU(d, grads + c * s.row + u);
      const float* const feature = features + c * s.pitch + s.Shift(ix) + u;
      for (int k = 0; k < kColumns; ++k) sum[k] = hn::MulAdd(hn::LoadU(d, feature + k * s.scale), grad, sum[k]);
    }
    for (int k = 0; k < kColumns; ++k) hn::StoreU(sum[k], d, to + k * s.row + u);
  }
}

// Writes each element `scale` times.
template <class T>
HWY_INLINE void RepeatColumns(const T* from, int64_t width, int64_t scale, float* to) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t x = 0;
  if (scale == 2) {
    for (; x + lanes <= width; x += lanes) {
      const auto value = LoadFloat(d, from + x);
      hn::StoreInterleaved2(value, value, d, to + 2 * x);
    }
  }
  for (; x < width; ++x) std::fill_n(to + x * scale, scale, ToFloat(from[x]));
}

// A task owns the masks of some rows of output pixels.
template <class T>
Status MasksBackward(const Context& context, const Sizes& s, const T* grad_output, const T* features, T* grad_masks) {
  constexpr int64_t kRows = 4, kColumns = 5;  // output rows and window columns that are computed together
  const int64_t parts = (s.scale + kRows - 1) / kRows, items = s.images * s.height * parts;
  const int64_t rows_each = std::min(s.scale, kRows), grads_size = s.channels * s.row;
  const int64_t floats = rows_each * grads_size + s.channels * s.pitch + kColumns * s.row;
  // `grads` is [rows][channels][row].
  const auto compute = [&](float* grads, int64_t begin, int64_t end) HWY_ATTR {
    float* const repeated = grads + rows_each * grads_size;  // [channels][pitch]: features in the output's resolution
    float* const sums = repeated + s.channels * s.pitch;     // [columns][row]
    std::fill_n(grads, floats, 0.0f);                        // the margins remain 0
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / parts / s.height, y = item / parts % s.height, r_begin = item % parts * kRows;
      const int64_t rows = std::min(kRows, s.scale - r_begin), first_row = y * s.scale + r_begin;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < s.channels; ++c) {
          WidenRow(grad_output + (image * s.channels + c) * s.out_pixels() + (first_row + r) * s.out_width, s.out_width,
                   grads + r * grads_size + c * s.row);
        }
      }
      for (int64_t iy = 0; iy < s.kernel; ++iy) {
        const int64_t at_y = y + iy - s.half;
        const bool inside = at_y >= 0 && at_y < s.height;
        for (int64_t c = 0; inside && c < s.channels; ++c) {
          const T* const from = features + ((image * s.channels + c) * s.height + at_y) * s.width;
          float* const to = repeated + c * s.pitch + s.margin;
          RepeatColumns(from, s.width, s.scale, to);
        }
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t ix = 0; ix < s.kernel; ix += kColumns) {
            const int64_t some = std::min(kColumns, s.kernel - ix);
            if (inside) {
              constexpr decltype(&SumChannels<1>) kSum[] = {SumChannels<1>, SumChannels<2>, SumChannels<3>,
                                                            SumChannels<4>, SumChannels<5>};
              kSum[some - 1](s, grads + r * grads_size, repeated, ix, sums);
            }
            for (int64_t k = 0; k < some; ++k) {
              float* const sum = sums + k * s.row;
              const int64_t first = inside ? s.FirstInside(ix + k) : s.out_width;
              const int64_t last = inside ? std::max(first, s.LastInside(ix + k)) : s.out_width;
              std::fill_n(sum, first, 0.0f);  // not NaN, whatever the gradients are
              std::fill_n(sum + last, s.out_width - last, 0.0f);
              const int64_t plane = image * s.kernel * s.kernel + iy * s.kernel + ix + k;
              NarrowRow(sum, s.out_width, grad_masks + plane * s.out_pixels() + (first_row + r) * s.out_width);
            }
          }
        }
      }
    }
  };
  if (context.ParallelForWithScratch<float>(items, 1, floats, compute)) return Status::Ok();
  return Internal("out of memory: ", floats, " elements for some rows");
}

template <class T>
Status CarafeBackwardCpu(const CarafeBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                         Tensor<const T, 4> features, Tensor<const T, 4> masks,
                         std::optional<Tensor<T, 4>> grad_features, std::optional<Tensor<T, 4>> grad_masks) {
  const Sizes sizes(op, features.shape());
  if (grad_features && grad_features->size() > 0) {
    POLYOP_RETURN_IF_ERROR(FeaturesBackward(context, sizes, grad_output.data(), masks.data(), grad_features->data()));
  }
  if (grad_masks && grad_masks->size() > 0) {
    POLYOP_RETURN_IF_ERROR(MasksBackward(context, sizes, grad_output.data(), features.data(), grad_masks->data()));
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CarafeBackward, CarafeBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
