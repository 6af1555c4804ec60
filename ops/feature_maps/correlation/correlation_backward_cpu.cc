// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/correlation/correlation_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/feature_maps/correlation/correlation_backward.h"
#include "ops/feature_maps/correlation/correlation_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using RowTag = hn::CappedTag<float, 16>;
constexpr int64_t kRowLanes = static_cast<int64_t>(hn::MaxLanes(RowTag()));
constexpr int64_t kChannelsAtOnce = 8;  // share the loads of the weights

// Adds weights[j][x] * from[c][j * step + x] for all j to to[c][x], for kCount channels and x in [0, pitch).
template <int64_t kCount>
void AddProducts(const float* weights, int64_t displacements, int64_t step, const float* from, int64_t from_pitch,
                 float* to, int64_t pitch) {
  const RowTag d;
  for (int64_t x = 0; x < pitch; x += kRowLanes) {
    hn::Vec<RowTag> sums[kCount];
    for (int64_t c = 0; c < kCount; ++c) sums[c] = hn::LoadU(d, to + c * pitch + x);
    for (int64_t j = 0; j < displacements; ++j) {
      const auto weight = hn::LoadU(d, weights + j * pitch + x);
      const float* const pixel = from + j * step + x;
      for (int64_t c = 0; c < kCount; ++c) {
        sums[c] = hn::MulAdd(weight, hn::LoadU(d, pixel + c * from_pitch), sums[c]);
      }
    }
    for (int64_t c = 0; c < kCount; ++c) hn::StoreU(sums[c], d, to + c * pitch + x);
  }
}

// The gradient of one input. A row is the sum over displacements of rows of the other input, weighted by the gradients
// of the windows that contain a pixel. These weights are the same for all channels.
template <class T>
class InputGradient {
 public:
  // `sign` is 1 for the gradient of input1, whose pixels are multiplied by displaced ones, and -1 for that of input2.
  InputGradient(const Correlation& op, const Tensor<const T, 5>& grad_output, const Tensor<const T, 4>& other,
                int64_t sign)
      : op_(op),
        grad_output_(grad_output),
        other_(other),
        sign_(sign),
        near_(std::min(op.max_displacement, (other.dim(3) - 1) / op.dilation_patch[1])),
        pitch_((other.dim(3) + 15) / 16 * 16),
        reach_(near_ * op.dilation_patch[1]) {}

  Status Run(const Context& context, const Tensor<T, 4>& grad) const {
    const int64_t channels = other_.dim(1), height = other_.dim(2), width = other_.dim(3), plane = height * width;
    const int64_t copy_pitch = pitch_ + 2 * reach_, row_floats = (channels + 2 * near_ + 1) * pitch_;
    const Scratch<float> copy = context.Allocate<float>(height * channels * copy_pitch);
    if (!copy) return Internal("out of memory: rows of ", ToString(other_.shape()));
    for (int64_t n = 0; n < other_.dim(0); ++n) {
      context.ParallelFor(height, GrainFor(static_cast<double>(channels * copy_pitch)),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t y = begin; y < end; ++y) {
                              CopyRow(other_.data() + n * channels * plane + y * width, channels, plane, width, -reach_,
                                      width + reach_, copy.data() + y * channels * copy_pitch, copy_pitch);
                            }
                          });
      const auto compute = [&](float* sums, int64_t begin, int64_t end) {
        for (int64_t y = begin; y < end; ++y) {
          ComputeRow(n, y, copy.data(), copy_pitch, sums, sums + channels * pitch_);
          for (int64_t c = 0; c < channels; ++c) {
            T* const to = grad.data() + (n * channels + c) * plane + y * width;
            for (int64_t x = 0; x < width; ++x) to[x] = FromFloat<T>(sums[c * pitch_ + x]);
          }
        }
      };
      if (!context.ParallelForWithScratch<float>(height, 1, row_floats, compute)) {
        return Internal("out of memory: rows of ", ToString(other_.shape()));
      }
    }
    return Status::Ok();
  }

 private:
  // Computes row y of image n to sums [channels][pitch]. `copy` is [height][channels][copy_pitch] of the other input.
  void ComputeRow(int64_t n, int64_t y, const float* copy, int64_t copy_pitch, float* sums, float* weights) const {
    const int64_t channels = other_.dim(1), height = other_.dim(2);
    std::fill_n(sums, channels * pitch_, 0.0f);
    for (int64_t i = 0; i < grad_output_.dim(1); ++i) {
      const int64_t down = (i - op_.max_displacement) * op_.dilation_patch[0], other_row = y + sign_ * down;
      if (other_row < 0 || other_row >= height) continue;
      if (!FillWeights(n, i, sign_ > 0 ? y : other_row, weights)) continue;
      const float* const from = copy + other_row * channels * copy_pitch + reach_ - sign_ * reach_;
      const int64_t step = sign_ * op_.dilation_patch[1];
      int64_t c = 0;
      for (; c + kChannelsAtOnce <= channels; c += kChannelsAtOnce) {
        AddProducts<kChannelsAtOnce>(weights, 2 * near_ + 1, step, from + c * copy_pitch, copy_pitch, sums + c * pitch_,
                                     pitch_);
      }
      for (; c < channels; ++c) {
        AddProducts<1>(weights, 2 * near_ + 1, step, from + c * copy_pitch, copy_pitch, sums + c * pitch_, pitch_);
      }
    }
  }

  // Fills weights [2 * near + 1][pitch] for row `row` of input1: for each pixel of the result, the sum of the gradients
  // of the windows that contain the pixel of input1. Returns false if there are none.
  bool FillWeights(int64_t n, int64_t i, int64_t row, float* weights) const {
    const int64_t width = other_.dim(3), patch = grad_output_.dim(1), windows = grad_output_.dim(4);
    bool any = false;
    std::fill_n(weights, (2 * near_ + 1) * pitch_, 0.0f);
    for (int64_t a = 0; a < op_.kernel_size[0]; ++a) {
      const int64_t offset = row + op_.padding[0] - a * op_.dilation[0], y = offset / op_.stride[0];
      if (offset < 0 || offset % op_.stride[0] != 0 || y >= grad_output_.dim(3)) continue;
      any = true;
      for (int64_t j = -near_; j <= near_; ++j) {
        const int64_t right = j * op_.dilation_patch[1];
        const int64_t low = std::max<int64_t>(0, -right), high = std::min(width, width - right);  // in input1
        const T* const grads =
            grad_output_.data() +
            (((n * patch + i) * patch + j + op_.max_displacement) * grad_output_.dim(3) + y) * windows;
        float* const to = weights + (j + near_) * pitch_ + (sign_ > 0 ? 0 : right);
        for (int64_t b = 0; b < op_.kernel_size[1]; ++b) {
          const int64_t shift = b * op_.dilation[1] - op_.padding[1], stride = op_.stride[1];
          const int64_t first = std::max<int64_t>(0, low - shift + stride - 1) / stride;
          for (int64_t x = first; x < windows && x * stride + shift < high; ++x) {
            to[x * stride + shift] += ToFloat(grads[x]);
          }
        }
      }
    }
    return any;
  }

  const Correlation& op_;
  const Tensor<const T, 5>& grad_output_;
  const Tensor<const T, 4>& other_;
  const int64_t sign_;
  const int64_t near_;   // displacements in each direction that can reach the image
  const int64_t pitch_;  // of rows of sums and weights
  const int64_t reach_;  // in pixels
};

template <class T>
Status CorrelationBackwardCpu(const CorrelationBackward& op, const Context& context, Tensor<const T, 5> grad_output,
                              Tensor<const T, 4> input1, Tensor<const T, 4> input2,
                              std::optional<Tensor<T, 4>> grad_input1, std::optional<Tensor<T, 4>> grad_input2) {
  if (input1.size() == 0) return Status::Ok();
  if (grad_input1) POLYOP_RETURN_IF_ERROR(InputGradient<T>(op, grad_output, input2, 1).Run(context, *grad_input1));
  if (grad_input2) POLYOP_RETURN_IF_ERROR(InputGradient<T>(op, grad_output, input1, -1).Run(context, *grad_input2));
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CorrelationBackward, CorrelationBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
