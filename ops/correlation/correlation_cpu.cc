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
constexpr int64_t kPiece = 256;
// Displacements whose products share the reading of input1.
constexpr int64_t kTogether = 4;

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

// sums[k][x] of `count` pixels, padded to whole vectors: products of a[x] and b[shift[k] + x] over all channels.
void SumProducts(const float* a, int64_t a_pitch, const float* b, int64_t b_pitch, const int64_t* shift,
                 int64_t channels, int64_t count, float* sums) {
  const RowTag d;
  for (int64_t x = 0; x < count; x += kRowLanes) {
    hn::Vec<RowTag> sum[kTogether];
    for (auto& s : sum) s = hn::Zero(d);
    for (int64_t c = 0; c < channels; ++c) {
      const auto value = hn::LoadU(d, a + c * a_pitch + x);
      const float* const other = b + c * b_pitch + x;
      for (int64_t k = 0; k < kTogether; ++k) sum[k] = hn::MulAdd(value, hn::LoadU(d, other + shift[k]), sum[k]);
    }
    for (int64_t k = 0; k < kTogether; ++k) hn::StoreU(sum[k], d, sums + k * a_pitch + x);
  }
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

// A task's rows in float: a piece of input1, what the displacements reach of input2 around it, the products of
// kTogether displacements, and the sums of a row of output for all displacements to the right.
struct Rows {
  int64_t channels, width, reach, patch, windows;
  int64_t piece = std::min(kPiece, (width + 15) / 16 * 16);
  int64_t b_pitch = piece + 2 * reach;

  int64_t Floats() const { return channels * (piece + b_pitch) + kTogether * piece + patch * windows; }
  float* A(float* memory) const { return memory; }
  float* B(float* memory) const { return memory + channels * piece; }
  float* Products(float* memory) const { return B(memory) + channels * b_pitch; }
  float* Sums(float* memory) const { return Products(memory) + kTogether * piece; }
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
        rows_{a.dim(1), a.dim(3), near_ * op.dilation_patch[1], output.dim(1), output.dim(4)} {}

  Status Run(const Context& context) const {
    const int64_t items = output_.dim(0) * output_.dim(3) * rows_.patch;
    const double products = static_cast<double>(rows_.channels * a_.dim(3)) * static_cast<double>(rows_.patch);
    const int64_t grain = GrainFor(0.1 * products * static_cast<double>(op_.kernel_size[0]));
    const Scratch<float> memory = context.Allocate<float>(Context::NumTasks(items, grain) * rows_.Floats());
    if (!memory) return Internal("out of memory: rows of ", ToString(a_.shape()));
    context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
      float* const rows = memory.data() + task * rows_.Floats();
      for (int64_t item = begin; item < end; ++item) {
        const int64_t i = item % rows_.patch, y = item / rows_.patch % output_.dim(3);
        MakeRow(item / rows_.patch / output_.dim(3), i, y, rows);
      }
    });
    return Status::Ok();
  }

 private:
  // Row y of picture n for displacement i downwards and all displacements to the right.
  void MakeRow(int64_t n, int64_t i, int64_t y, float* memory) const {
    const int64_t height = a_.dim(2), width = a_.dim(3), down = (i - op_.max_displacement) * op_.dilation_patch[0];
    float* const sums = rows_.Sums(memory);
    std::fill_n(sums, rows_.patch * rows_.windows, 0.0f);
    for (int64_t k = 0; k < op_.kernel_size[0]; ++k) {
      const int64_t row = y * op_.stride[0] - op_.padding[0] + k * op_.dilation[0];
      if (row < 0 || row >= height || row + down < 0 || row + down >= height) continue;
      const T* const a = a_.data() + (n * rows_.channels * height + row) * width;
      const T* const b = b_.data() + (n * rows_.channels * height + row + down) * width;
      for (int64_t x = 0; x < width; x += rows_.piece) AddPiece(a, b, x, std::min(rows_.piece, width - x), memory);
    }
    T* to = output_.data() + ((n * rows_.patch + i) * rows_.patch * output_.dim(3) + y) * rows_.windows;
    for (int64_t j = 0; j < rows_.patch; ++j, to += output_.dim(3) * rows_.windows) {
      for (int64_t x = 0; x < rows_.windows; ++x) to[x] = FromFloat<T>(sums[j * rows_.windows + x]);
    }
  }

  // Pixels [x, x + count) of a row of each picture.
  void AddPiece(const T* a, const T* b, int64_t x, int64_t count, float* memory) const {
    const int64_t width = a_.dim(3), plane = a_.dim(2) * width;
    float *const a_rows = rows_.A(memory), *const b_rows = rows_.B(memory), *const products = rows_.Products(memory);
    CopyRow(a, rows_.channels, plane, width, x, x + count, a_rows, rows_.piece);
    CopyRow(b, rows_.channels, plane, width, x - rows_.reach, x + count + rows_.reach, b_rows, rows_.b_pitch);
    for (int64_t first = -near_; first <= near_; first += kTogether) {
      int64_t shift[kTogether];
      for (int64_t k = 0; k < kTogether; ++k) {
        shift[k] = rows_.reach + std::min(first + k, near_) * op_.dilation_patch[1];
      }
      SumProducts(a_rows, rows_.piece, b_rows, rows_.b_pitch, shift, rows_.channels, count, products);
      for (int64_t k = 0; k < kTogether && first + k <= near_; ++k) {
        const int64_t right = (first + k) * op_.dilation_patch[1];
        const int64_t low = std::max<int64_t>(0, -right - x), high = std::min(count, width - right - x);
        float* const to = rows_.Sums(memory) + (first + k + op_.max_displacement) * rows_.windows;
        for (int64_t p = 0; low < high && p < op_.kernel_size[1]; ++p) {
          AddWindows(products + k * rows_.piece, low, high, op_.stride[1], p * op_.dilation[1] - op_.padding[1] - x,
                     rows_.windows, to);
        }
      }
    }
  }

  const Correlation& op_;
  const Tensor<const T, 4> a_, b_;
  const Tensor<T, 5> output_;
  const int64_t near_;  // displacements to each side that can meet the picture
  const Rows rows_;
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
