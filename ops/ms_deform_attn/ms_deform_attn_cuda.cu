#include "families/sampling/zero_padded_sample.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/pack.h"
#include "ops/ms_deform_attn/ms_deform_attn.h"

namespace polyop {
namespace {

constexpr int kThreads = 128;
constexpr int kTableSize = 256;  // samples that a block holds at a time

template <class I>
struct Levels {
  const I *shapes, *starts;
  int64_t spatial;

  // With the attention's weight in the pixels', which are numbered over all levels. Pixels that the shapes promise but
  // 'value' does not have count as outside.
  POLYOP_HD ZeroPaddedSample At(int64_t level, float location_x, float location_y, float weight) const {
    const int64_t height = shapes[2 * level], width = shapes[2 * level + 1], start = starts[level];
    if (height > spatial || width > spatial || start < 0 || start >= spatial) return {};
    const float x = location_x * static_cast<float>(width) - 0.5f, y = location_y * static_cast<float>(height) - 0.5f;
    ZeroPaddedSample sample = ZeroPaddedSample::At(y, x, height, width, weight);
    for (int32_t& pixel : sample.pixel) {
      if (pixel >= 0) pixel = start + pixel < spatial ? static_cast<int32_t>(start + pixel) : -1;
    }
    return sample;
  }
};

// A block takes several (query, head) pairs: its threads find the samples of all of them, then each sums up kWide
// components of one pair. Neighbouring threads read neighbouring components.
template <class T, class I, int kWide>
Status Attend(const CudaContext& cuda, const Tensor<const T, 4>& value, const Levels<I>& levels,
              const Tensor<const T, 6>& locations, const T* weight, T* output) {
  using Components = Pack<T, kWide>;
  using Sums = Pack<float, kWide>;
  const int64_t heads = value.dim(2), parts = value.dim(3) / kWide;
  const int64_t points = locations.dim(4), samples = locations.dim(3) * points;
  const auto* const from = reinterpret_cast<const Components*>(value.data());
  const T* const location = locations.data();
  auto* const to = reinterpret_cast<Components*>(output);
  const int64_t per_picture = locations.dim(1) * heads, pairs = value.dim(0) * per_picture;
  // As many pairs as fill the threads, and whose samples fit the table; a pair with more of them is done in turns.
  int64_t group = std::max<int64_t>(1, kThreads / parts);
  if (samples > 0) group = std::max<int64_t>(1, std::min(group, kTableSize / samples));
  const Divider by_parts(parts), per_pair(std::max<int64_t>(samples, 1));
  constexpr int64_t kShared = kTableSize * static_cast<int64_t>(sizeof(ZeroPaddedSample));
  return ForBlocks(cuda, BlocksFor(pairs, group), kThreads, kShared, [=] POLYOP_DEVICE(Block& block) {
    ZeroPaddedSample* const table = block.Shared<ZeroPaddedSample>(kTableSize);
    const int64_t first = block.index * group, count = pairs - first < group ? pairs - first : group;
    // Parts in turns of one a thread; for each turn the samples in turns of a table.
    for (int64_t turn = 0; turn < count * parts; turn += kThreads) {
      Block::Local<Sums> sums(block);
      block.ForThreads([&](int t) {
        for (float& sum : sums[t].of) sum = 0;
      });
      for (int64_t begin = 0; begin < samples; begin += kTableSize) {
        const int64_t held = samples - begin < kTableSize ? samples - begin : kTableSize;
        if (turn == 0 || samples > kTableSize) {
          block.ForThreads([&](int t) {
            for (int64_t i = t; i < count * held; i += kThreads) {
              const int64_t pair = held == samples ? per_pair.Quotient(i) : 0, s = begin + i - pair * held;
              const int64_t at = (first + pair) * samples + s;
              table[i] =
                  levels.At(s / points, ToFloat(location[2 * at]), ToFloat(location[2 * at + 1]), ToFloat(weight[at]));
            }
          });
        }
        block.ForThreads([&](int t) {
          if (turn + t >= count * parts) return;
          int64_t part;
          const int64_t in_group = by_parts.Split(turn + t, &part), pair = first + in_group;
          const Components* const picture =
              from + (pair / per_picture * levels.spatial * heads + pair % heads) * parts + part;
          Sums own = sums[t];
          for (int64_t s = 0; s < held; ++s) {
            const ZeroPaddedSample& sample = table[in_group * held + s];
            for (int k = 0; k < 4; ++k) {
              if (sample.pixel[k] < 0) continue;
              const Components read = picture[sample.pixel[k] * heads * parts];
              for (int c = 0; c < kWide; ++c) own.of[c] = std::fma(ToFloat(read.of[c]), sample.weight[k], own.of[c]);
            }
          }
          sums[t] = own;
        });
      }
      block.ForThreads([&](int t) {
        if (turn + t >= count * parts) return;
        Components made;
        for (int c = 0; c < kWide; ++c) made.of[c] = FromFloat<T>(sums[t].of[c]);
        to[first * parts + turn + t] = made;
      });
    }
  });
}

template <class T, class I>
Status MsDeformAttnCuda(const MsDeformAttn&, const CudaContext& cuda, Tensor<const T, 4> value,
                        Tensor<const I, 2> shapes, Tensor<const I, 1> starts, Tensor<const T, 6> locations,
                        Tensor<const T, 5> weights, Tensor<T, 3> output) {
  const int64_t spatial = value.dim(1);
  if (spatial > INT32_MAX) return InvalidArgument("'value' has ", spatial, " pixels, wanted fewer than 2^31");
  const Levels<I> levels{shapes.data(), starts.data(), spatial};
  constexpr int kWide = 4;
  using Components = Pack<T, kWide>;
  const bool wide =
      value.dim(3) % kWide == 0 && Components::IsAligned(value.data()) && Components::IsAligned(output.data());
  const auto attend = wide ? Attend<T, I, kWide> : Attend<T, I, 1>;
  return attend(cuda, value, levels, locations, weights.data(), output.data());
}

POLYOP_CUDA_KERNEL(MsDeformAttn, MsDeformAttnF32I64, MsDeformAttnCuda<float, int64_t>);
POLYOP_CUDA_KERNEL(MsDeformAttn, MsDeformAttnF16I64, MsDeformAttnCuda<Half, int64_t>);
POLYOP_CUDA_KERNEL(MsDeformAttn, MsDeformAttnBF16I64, MsDeformAttnCuda<BFloat16, int64_t>);
POLYOP_CUDA_KERNEL(MsDeformAttn, MsDeformAttnF32I32, MsDeformAttnCuda<float, int32_t>);
POLYOP_CUDA_KERNEL(MsDeformAttn, MsDeformAttnF16I32, MsDeformAttnCuda<Half, int32_t>);

}  // namespace
}  // namespace polyop
