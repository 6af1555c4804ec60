#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/correlation/correlation_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/correlation/correlation.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using RowTag = hn::CappedTag<float, 16>;
constexpr int64_t kRowLanes = static_cast<int64_t>(hn::MaxLanes(RowTag()));

// Pixels of a row that are worked on together, so that their channels stay in the cache: at most.
constexpr int64_t kPiece = 128;
// Displacements whose products share the reading of both inputs: at most, as registers allow.
constexpr int64_t kTogether = HWY_TARGET <= HWY_AVX3 ? 12 : 8;

// Columns [from, to) of a row of `channels` planes, to rows of `pitch` floats. What lies outside of the picture is 0.
template <class T>
void CopyRow(const T* row, int64_t channels, int64_t plane, int64_t width, int64_t from, int64_t to, float* copy,
             int64_t pitch) {
  const int64_t first = std::clamp<int64_t>(from, 0, width), last = std::clamp<int64_t>(to, first, width);
  for (int64_t c = 0; c < channels; ++c) {
    float* const out = copy + c * pitch;
    std::fill_n(out, first - from, 0.0f);
    WidenRow(row + c * plane + first, last - first, out + first - from);
    std::fill_n(out + last - from, pitch - (last - from), 0.0f);
  }
}

// sums[k][x] of `count` pixels, padded to whole vectors: products of a[x] and b[k * step + x] over all channels.
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
    for (int64_t k = 0; k < kCount; ++k) hn::StoreU(sum[k], d, sums + k * a_pitch + x);
  }
}

// SumProducts of `together` displacements, from 1 to kTogether.
template <int64_t kCount = kTogether>
auto SumProductsOf(int64_t together) {
  if constexpr (kCount > 1) {
    if (together < kCount) return SumProductsOf<kCount - 1>(together);
  }
  return SumProducts<kCount>;
}

// The windows along a row: adds to[x] += from[x * stride + offset] for those x whose pixel is in [low, high).
void AddWindows(const float* from, int64_t low, int64_t high, int64_t stride, int64_t offset, int64_t windows,
                float* to) {
  const auto first_from = [&](int64_t pixel) {
    return pixel <= offset ? 0 : std::min(windows, (pixel - offset + stride - 1) / stride);
  };
  const int64_t begin = first_from(low), end = first_from(high);
  for (int64_t x = begin; x < end; ++x) to[x] += from[x * stride + offset];
}

// Both inputs in float, in pieces of rows that lie one behind the other: [channels][piece] of input1, and of input2
// [channels][b_pitch], what displacements reach of it around the piece.
struct Pieces {
  int64_t channels, width, reach;
  int64_t piece = std::min(kPiece, (width + 15) / 16 * 16);
  int64_t b_pitch = piece + 2 * reach;

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
    const int64_t copied = a_.dim(0) * a_.dim(2) * pieces_.of_row();
    const Scratch<float> a = context.Allocate<float>(copied * pieces_.AFloats());
    const Scratch<float> b = context.Allocate<float>(copied * pieces_.BFloats());
    const int64_t items = output_.dim(0) * output_.dim(3) * patch_;
    const double products = static_cast<double>(pieces_.channels * a_.dim(3)) * static_cast<double>(patch_);
    const int64_t grain = GrainFor(0.05 * products * static_cast<double>(op_.kernel_size[0]));
    const int64_t task_floats = kTogether * pieces_.piece + patch_ * windows_;
    const Scratch<float> memory = context.Allocate<float>(Context::NumTasks(items, grain) * task_floats);
    if (!a || !b || !memory) return Internal("out of memory: rows of ", ToString(a_.shape()));
    context.ParallelFor(copied, GrainFor(static_cast<double>(pieces_.BFloats())), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) CopyPiece(i, a.data(), b.data());
    });
    context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
      float* const products_of_task = memory.data() + task * task_floats;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t i = item % patch_, y = item / patch_ % output_.dim(3), n = item / patch_ / output_.dim(3);
        MakeRow(n, i, y, a.data(), b.data(), products_of_task);
      }
    });
    return Status::Ok();
  }

 private:
  // Piece i of all pieces of all rows of all pictures.
  void CopyPiece(int64_t i, float* a, float* b) const {
    const int64_t height = a_.dim(2), width = a_.dim(3), plane = height * width;
    const int64_t x = i % pieces_.of_row() * pieces_.piece, row = i / pieces_.of_row();
    const int64_t from = row / height * pieces_.channels * plane + row % height * width;
    CopyRow(a_.data() + from, pieces_.channels, plane, width, x, std::min(x + pieces_.piece, width),
            a + i * pieces_.AFloats(), pieces_.piece);
    CopyRow(b_.data() + from, pieces_.channels, plane, width, x - pieces_.reach,
            std::min(x + pieces_.piece, width) + pieces_.reach, b + i * pieces_.BFloats(), pieces_.b_pitch);
  }

  // Row y of picture n for displacement i downwards and all displacements to the right; `memory` is for products and
  // sums.
  void MakeRow(int64_t n, int64_t i, int64_t y, const float* a, const float* b, float* memory) const {
    const int64_t height = a_.dim(2), width = a_.dim(3), down = (i - op_.max_displacement) * op_.dilation_patch[0];
    float* const sums = memory + kTogether * pieces_.piece;
    std::fill_n(sums, patch_ * windows_, 0.0f);
    for (int64_t k = 0; k < op_.kernel_size[0]; ++k) {
      const int64_t row = y * op_.stride[0] - op_.padding[0] + k * op_.dilation[0];
      if (row < 0 || row >= height || row + down < 0 || row + down >= height) continue;
      const int64_t piece = (n * height + row) * pieces_.of_row(), other = piece + down * pieces_.of_row();
      for (int64_t p = 0; p < pieces_.of_row(); ++p) {
        const int64_t x = p * pieces_.piece;
        AddPiece(a + (piece + p) * pieces_.AFloats(), b + (other + p) * pieces_.BFloats(), x,
                 std::min(pieces_.piece, width - x), memory, sums);
      }
    }
    T* to = output_.data() + ((n * patch_ + i) * patch_ * output_.dim(3) + y) * windows_;
    for (int64_t j = 0; j < patch_; ++j, to += output_.dim(3) * windows_) {
      for (int64_t x = 0; x < windows_; ++x) to[x] = FromFloat<T>(sums[j * windows_ + x]);
    }
  }

  // Pixels [x, x + count) of a row of each picture.
  void AddPiece(const float* a, const float* b, int64_t x, int64_t count, float* products, float* sums) const {
    const int64_t width = a_.dim(3), step = op_.dilation_patch[1], displacements = 2 * near_ + 1;
    const int64_t groups = (displacements + kTogether - 1) / kTogether;
    const int64_t together = (displacements + groups - 1) / groups;
    for (int64_t first = -near_; first <= near_; first += together) {
      const int64_t some = std::min(together, near_ + 1 - first);
      SumProductsOf(some)(a, pieces_.piece, b + pieces_.reach + first * step, pieces_.b_pitch, step, pieces_.channels,
                          count, products);
      for (int64_t k = 0; k < some; ++k) {
        const int64_t right = (first + k) * step;
        const int64_t low = std::max<int64_t>(0, -right - x), high = std::min(count, width - right - x);
        float* const to = sums + (first + k + op_.max_displacement) * windows_;
        for (int64_t p = 0; low < high && p < op_.kernel_size[1]; ++p) {
          AddWindows(products + k * pieces_.piece, low, high, op_.stride[1], p * op_.dilation[1] - op_.padding[1] - x,
                     windows_, to);
        }
      }
    }
  }

  const Correlation& op_;
  const Tensor<const T, 4> a_, b_;
  const Tensor<T, 5> output_;
  const int64_t near_;  // displacements to each side that can meet the picture
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
POLYOP_CPU_KERNEL(Correlation, CorrelationF32, CorrelationCpu<float>);
POLYOP_CPU_KERNEL(Correlation, CorrelationF16, CorrelationCpu<Half>);
POLYOP_CPU_KERNEL(Correlation, CorrelationBF16, CorrelationCpu<BFloat16>);
}  // namespace polyop
#endif
