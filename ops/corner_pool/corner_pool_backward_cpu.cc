#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/corner_pool/corner_pool_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/corner_pool/corner_pool_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes the gradients of up to a vector of columns of `length` elements, which are `step` apart. The first pass
// marks the elements that become the maximum; the second one, backwards, adds up the gradients until the previous such
// element. `to` may be `input`.
template <bool kWhole, class T>
HWY_INLINE void VectorBackward(const T* input, const T* grad, int64_t length, int64_t step, size_t columns, T* to) {
  const hn::ScalableTag<float> d;
  const auto load = [&](const T* from) HWY_ATTR { return kWhole ? LoadFloat(d, from) : LoadFloatN(d, from, columns); };
  const auto store = [&](auto v, T* at) HWY_ATTR {
    if constexpr (kWhole) {
      StoreFloat(v, d, at);
    } else {
      StoreFloatN(v, d, at, columns);
    }
  };
  auto best = hn::Set(d, -INFINITY);
  for (int64_t i = 0; i < length; ++i) {
    const auto x = load(input + i * step);
    const auto replaces = hn::Or(hn::Ge(x, best), hn::IsNaN(x));
    best = hn::IfThenElse(replaces, x, best);
    store(hn::IfThenElseZero(replaces, hn::Set(d, 1.0f)), to + i * step);
  }
  auto sum = hn::Zero(d);
  for (int64_t i = length - 1; i >= 0; --i) {
    const auto replaced = hn::Ne(load(to + i * step), hn::Zero(d));
    sum = hn::Add(sum, load(grad + i * step));
    store(hn::IfThenElseZero(replaced, sum), to + i * step);
    sum = hn::IfThenZeroElse(replaced, sum);
  }
}

template <class T>
void ColumnsBackward(const T* input, const T* grad, int64_t length, int64_t step, int64_t columns, T* to) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  int64_t x = 0;
  for (; x + lanes <= columns; x += lanes) VectorBackward<true>(input + x, grad + x, length, step, 0, to + x);
  if (x < columns) {
    VectorBackward<false>(input + x, grad + x, length, step, static_cast<size_t>(columns - x), to + x);
  }
}

// A task owns strips of columns.
template <class T>
void VerticalBackward(const Context& context, const Shape& shape, const T* input, const T* grad, bool reverse, T* to) {
  constexpr int64_t kStrip = 64;
  const int64_t height = shape[2], width = shape[3], planes = shape[0] * shape[1];
  const int64_t strips = (width + kStrip - 1) / kStrip;
  context.ParallelFor(planes * strips, GrainFor(static_cast<double>(height * kStrip) * 0.5),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t item = begin; item < end; ++item) {
                          const int64_t x = item % strips * kStrip;
                          const int64_t at = (item / strips * height + (reverse ? height - 1 : 0)) * width + x;
                          ColumnsBackward(input + at, grad + at, height, reverse ? -width : width,
                                          std::min(kStrip, width - x), to + at);
                        }
                      });
}

// A task owns groups of 16 rows, which become columns in its memory.
template <class T>
Status HorizontalBackward(const Context& context, const Shape& shape, const T* input, const T* grad, bool reverse,
                          T* to) {
  constexpr int64_t kScratchBytes = 64 << 20;
  const int64_t width = shape[3], rows = shape[0] * shape[1] * shape[2], size = width * kBlockChannels;
  const int64_t groups = (rows + kBlockChannels - 1) / kBlockChannels;
  const int64_t tasks =
      std::clamp<int64_t>(kScratchBytes / (2 * size * static_cast<int64_t>(sizeof(float))), 1, Context::kMaxTasks);
  const int64_t grain = std::max(GrainFor(static_cast<double>(size)), (groups + tasks - 1) / tasks);
  const Scratch<float> scratch = context.Allocate<float>(Context::NumTasks(groups, grain) * 2 * size);
  if (!scratch) return Internal("out of memory: 16 rows of ", width, " elements");
  context.ParallelFor(groups, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float *const pixels = scratch.data() + task * 2 * size, *const grads = pixels + size;
    for (int64_t group = begin; group < end; ++group) {
      const int64_t at = group * kBlockChannels * width, held = std::min(kBlockChannels, rows - group * kBlockChannels);
      InterleaveChannels(input + at, held, width, width, pixels);
      InterleaveChannels(grad + at, held, width, width, grads);
      const int64_t first = reverse ? size - kBlockChannels : 0;
      ColumnsBackward(pixels + first, grads + first, width, reverse ? -kBlockChannels : kBlockChannels, kBlockChannels,
                      pixels + first);
      WriteChannels(pixels, width, held, width, to + at);
    }
  });
  return Status::Ok();
}

template <class T>
Status CornerPoolBackwardCpu(const CornerPoolBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                             Tensor<const T, 4> input, Tensor<T, 4> grad_input) {
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool reverse = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  if (input.size() == 0) return Status::Ok();
  if (!vertical) {
    return HorizontalBackward(context, input.shape(), input.data(), grad_output.data(), reverse, grad_input.data());
  }
  VerticalBackward(context, input.shape(), input.data(), grad_output.data(), reverse, grad_input.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CornerPoolBackward, CornerPoolBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
