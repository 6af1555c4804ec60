// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/item_groups.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/correlation/correlation_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/feature_maps/correlation/correlation.h"
#include "ops/feature_maps/correlation/correlation_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using RowTag = hn::CappedTag<float, 16>;
constexpr int64_t kRowLanes = static_cast<int64_t>(hn::MaxLanes(RowTag()));

// Maximum number of pixels of a row that are processed together, so that their channels stay in the cache.
constexpr int64_t kSpan = 128;
// Maximum number of displacements that share the loads of both inputs; limited by the registers.
constexpr int64_t kTogether = HWY_TARGET <= HWY_AVX3 ? 12 : 8;

// Computes sums[k][x], whose rows are kSpan apart, for `count` pixels, rounded up to whole vectors: the sum over
// channels of a[x] * b[k * step + x].
template <int64_t kCount>
void SumProducts(const float* a, int64_t a_pitch, const float* b, int64_t b_pitch, int64_t step, int64_t channels,
                 int64_t count, float* sums) {
  const RowTag d;
  for (int64_t x = 0; x < count; x += kRowLanes) {
    hn::Vec<RowTag> sum[kCount];
    for (auto& s : sum) s = hn::Zero(d);
    for (int64_t c = 0; c < channels; ++c) {
      const auto value = hn::LoadU(d, a + c * a_pitch + x);
      const float* const other = b + c * b_pitch + x;
      for (int64_t k = 0; k < kCount; ++k) sum[k] = hn::MulAdd(value, hn::LoadU(d, other + k * step), sum[k]);
    }
    for (int64_t k = 0; k < kCount; ++k) hn::StoreU(sum[k], d, sums + k * kSpan + x);
  }
}

// Returns SumProducts for `together` displacements. Requires: 1 <= together <= kTogether.
template <int64_t kCount = kTogether>
auto SumProductsOf(int64_t together) {
  if constexpr (kCount > 1) {
    if (together < kCount) return SumProductsOf<kCount - 1>(together);
  }
  return SumProducts<kCount>;
}

// Adds to[x] += from[x * stride + offset] for the windows x along a row whose pixel is in [low, high).
void AddWindows(const float* from, int64_t low, int64_t high, int64_t stride, int64_t offset, int64_t windows,
                float* to) {
  const auto first_from = [&](int64_t pixel) {
    return pixel <= offset ? 0 : std::min(windows, (pixel - offset + stride - 1) / stride);
  };
  const int64_t begin = first_from(low), end = first_from(high);
  for (int64_t x = begin; x < end; ++x) to[x] += from[x * stride + offset];
}

// The layout of the copies of both inputs in fp32, as consecutive pieces of rows: [channels][piece] of input1, and
// [channels][b_pitch] of input2, the piece extended by the pixels that displacements reach. If they reach far, a piece
// is no shorter than that, so that the copy of input2 is no more than about three times as large as the input.
struct Pieces {
  int64_t channels, width, reach;
  int64_t piece = Pitch(reach <= kSpan ? std::min(kSpan, width) : EvenPart(width, std::max<int64_t>(width / reach, 1)));
  int64_t b_pitch = Pitch(piece + 2 * reach);

  static int64_t EvenPart(int64_t total, int64_t parts) { return (total + parts - 1) / parts; }
  // Rounds up to whole vectors and avoids large powers of two, at which all channels would share few sets of the cache.
  static int64_t Pitch(int64_t floats) {
    const int64_t rounded = (floats + 15) / 16 * 16;
    return rounded > kSpan && rounded % 256 == 0 ? rounded + 16 : rounded;
  }

  int64_t of_row() const { return (width + piece - 1) / piece; }
  int64_t AFloats() const { return channels * piece; }
  int64_t BFloats() const { return channels * b_pitch; }
};

template <class T>
class Correlator {
 public:
  Correlator(const Correlation& op, const Tensor<const T, 4>& a, const Tensor<const T, 4>& b,
             const Tensor<T, 5>& output)
      : op_(op),
        a_(a),
        b_(b),
        output_(output),
        near_(std::min(op.max_displacement, (a.dim(3) - 1) / op.dilation_patch[1])),
        patch_(output.dim(1)),
        windows_(output.dim(4)),
        pieces_{a.dim(1), a.dim(3), near_ * op.dilation_patch[1]} {}

  Status Run(const Context& context) const {
    const int64_t images = a_.dim(0), pieces = a_.dim(2) * pieces_.of_row();  // of an image
    const ItemGroups groups(images,
                            static_cast<double>(pieces * (pieces_.AFloats() + pieces_.BFloats())) * sizeof(float));
    const Scratch<float> a = context.Allocate<float>(groups.at_once() * pieces * pieces_.AFloats());
    const Scratch<float> b = context.Allocate<float>(groups.at_once() * pieces * pieces_.BFloats());
    const int64_t items = output_.dim(3) * patch_;  // of an image
    const double products = static_cast<double>(pieces_.channels * a_.dim(3)) * static_cast<double>(patch_);
    const int64_t grain = GrainFor(0.05 * products * static_cast<double>(op_.kernel_size[0]));
    const int64_t row_floats = kTogether * kSpan + patch_ * windows_;
    const auto out_of_memory = [&] { return Internal("out of memory: rows of ", ToString(a_.shape())); };
    if (!a || !b) return out_of_memory();
    bool fits = true;
    groups.ForEach([&](int64_t first, int64_t some) {
      const int64_t copy_grain = GrainFor(static_cast<double>(pieces_.BFloats()));
      context.ParallelFor(some * pieces, copy_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) CopyPiece(first, i, a.data(), b.data());
      });
      const auto compute = [&](float* memory, int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t i = item % patch_, y = item / patch_ % output_.dim(3), n = item / items;
          ComputeRow(first, n, i, y, a.data(), b.data(), memory);
        }
      };
      fits = fits && context.ParallelForWithScratch<float>(some * items, grain, row_floats, compute);
    });
    return fits ? Status::Ok() : out_of_memory();
  }

 private:
  // Copies piece i of all pieces of all rows of the images from `first` on.
  void CopyPiece(int64_t first, int64_t i, float* a, float* b) const {
    const int64_t height = a_.dim(2), width = a_.dim(3), plane = height * width;
    const int64_t x = i % pieces_.of_row() * pieces_.piece, row = i / pieces_.of_row();
    const int64_t from = (first + row / height) * pieces_.channels * plane + row % height * width;
    CopyRow(a_.data() + from, pieces_.channels, plane, width, x, std::min(x + pieces_.piece, width),
            a + i * pieces_.AFloats(), pieces_.piece);
    CopyRow(b_.data() + from, pieces_.channels, plane, width, x - pieces_.reach,
            std::min(x + pieces_.piece, width) + pieces_.reach, b + i * pieces_.BFloats(), pieces_.b_pitch);
  }

  // Computes row y of image first + n, which is copy n, for vertical displacement i and all horizontal displacements.
  // `memory` holds products and sums.
  void ComputeRow(int64_t first, int64_t n, int64_t i, int64_t y, const float* a, const float* b, float* memory) const {
    const int64_t height = a_.dim(2), width = a_.dim(3), down = (i - op_.max_displacement) * op_.dilation_patch[0];
    float* const sums = memory + kTogether * kSpan;
    std::fill_n(sums, patch_ * windows_, 0.0f);
    for (int64_t k = 0; k < op_.kernel_size[0]; ++k) {
      const int64_t row = y * op_.stride[0] - op_.padding[0] + k * op_.dilation[0];
      if (row < 0 || row >= height || row + down < 0 || row + down >= height) continue;
      const int64_t piece = (n * height + row) * pieces_.of_row(), other = piece + down * pieces_.of_row();
      for (int64_t p = 0; p < pieces_.of_row(); ++p) {
        const int64_t x = p * pieces_.piece, end = std::min(pieces_.piece, width - x);
        for (int64_t at = 0; at < end; at += kSpan) {
          AddSpan(a + (piece + p) * pieces_.AFloats() + at, b + (other + p) * pieces_.BFloats() + at, x + at,
                  std::min(kSpan, end - at), memory, sums);
        }
      }
    }
    T* to = output_.data() + (((first + n) * patch_ + i) * patch_ * output_.dim(3) + y) * windows_;
    for (int64_t j = 0; j < patch_; ++j, to += output_.dim(3) * windows_) {
      for (int64_t x = 0; x < windows_; ++x) to[x] = FromFloat<T>(sums[j * windows_ + x]);
    }
  }

  // Adds the products of pixels [x, x + count) of a row to `sums`.
  void AddSpan(const float* a, const float* b, int64_t x, int64_t count, float* products, float* sums) const {
    const int64_t width = a_.dim(3), step = op_.dilation_patch[1], displacements = 2 * near_ + 1;
    const int64_t groups = (displacements + kTogether - 1) / kTogether;
    const int64_t together = (displacements + groups - 1) / groups;
    for (int64_t first = -near_; first <= near_; first += together) {
      const int64_t held = std::min(together, near_ + 1 - first);
      SumProductsOf(held)(a, pieces_.piece, b + pieces_.reach + first * step, pieces_.b_pitch, step, pieces_.channels,
                          count, products);
      for (int64_t k = 0; k < held; ++k) {
        const int64_t right = (first + k) * step;
        const int64_t low = std::max<int64_t>(0, -right - x), high = std::min(count, width - right - x);
        float* const to = sums + (first + k + op_.max_displacement) * windows_;
        for (int64_t p = 0; low < high && p < op_.kernel_size[1]; ++p) {
          AddWindows(products + k * kSpan, low, high, op_.stride[1], p * op_.dilation[1] - op_.padding[1] - x, windows_,
                     to);
        }
      }
    }
  }

  const Correlation& op_;
  const Tensor<const T, 4> a_, b_;
  const Tensor<T, 5> output_;
  const int64_t near_;  // displacements in each direction that can reach the image
  const int64_t patch_, windows_;
  const Pieces pieces_;
};

template <class T>
Status CorrelationCpu(const Correlation& op, const Context& context, Tensor<const T, 4> input1,
                      Tensor<const T, 4> input2, Tensor<T, 5> output) {
  if (input1.size() == 0) {
    std::fill_n(output.data(), output.size(), FromFloat<T>(0));
    return Status::Ok();
  }
  return Correlator<T>(op, input1, input2, output).Run(context);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Correlation, CorrelationCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
