#include "families/sampling/grid_backward.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "families/sampling/grid_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/sampling/grid_slopes-inl.h"
#include "families/sampling/grid_taps-inl.h"
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kChunk = 128;  // points whose taps are found together

// The taps of a chunk of points along each axis.
template <int kAxes, int kPerAxis>
struct ChunkTaps {
  int32_t index[kAxes][kPerAxis][kChunk];  // -1: outside
  float weight[kAxes][kPerAxis][kChunk], slope[kAxes][kPerAxis][kChunk];

  void Find(const Axis* axes, const float* points, int64_t count) {
    const F d;
    const I di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < count; i += lanes) {
      float last[kAxes * hn::MaxLanes(d)] = {};  // the last points, up to a vector
      const float* from = points + i * kAxes;
      if (i + lanes > count) {
        std::copy_n(from, (count - i) * kAxes, last);
        from = last;
      }
      VF at[kAxes];
      LoadPoints<kAxes>(from, at);
      for (int a = 0; a < kAxes; ++a) {
        AxisTaps<kPerAxis> taps;
        AxisSlopes<kPerAxis> slopes;
        taps.Find(axes[a], at[a]);
        slopes.Find(axes[a], at[a]);
        for (int k = 0; k < kPerAxis; ++k) {
          hn::StoreU(taps.index[k], di, index[a][k] + i);
          hn::StoreU(taps.weight[k], d, weight[a][k] + i);
          hn::StoreU(slopes.slope[k], d, slope[a][k] + i);
        }
      }
    }
  }
};

// Some rows of 16 channels of an image, channels last, and the sums of their gradients. Either may be null.
struct PixelBand {
  const float* value;
  float* sums;
  int64_t begin, count;  // pixels
  int64_t pitch;         // elements per pixel

  // Returns the index of a pixel in the band, or -1.
  HWY_INLINE int64_t Find(int64_t pixel) const {
    return static_cast<uint64_t>(pixel - begin) < static_cast<uint64_t>(count) ? pixel - begin : -1;
  }
};

// Adds the gradient of point i to its taps in the band, and sets grad_point[axis] to the sum over these taps of the
// gradients with respect to the point's coordinates.
template <int kAxes, int kPerAxis>
HWY_INLINE void AddPoint(const ChunkTaps<kAxes, kPerAxis>& taps, int64_t i, const Axis* axes, const float* grad,
                         const PixelBand& band, float* grad_point) {
  constexpr int kTaps = kPerAxis * kPerAxis * (kAxes == 3 ? kPerAxis : 1);
  BlockSum g, slopes[kAxes];
  g.Load(grad);
  for (BlockSum& s : slopes) s.Fill(0);
  bool touches = false;
  for (int k = 0; k < kTaps; ++k) {
    const int of[3] = {k % kPerAxis, k / kPerAxis % kPerAxis, k / (kPerAxis * kPerAxis)};
    const int32_t x = taps.index[0][of[0]][i], y = taps.index[1][of[1]][i];
    int32_t z = 0, any = x | y;
    if constexpr (kAxes == 3) any |= z = taps.index[2][of[2]][i];
    if (any < 0) continue;
    const int64_t pixel = band.Find((int64_t{z} * axes[1].extent + y) * axes[0].extent + x);
    if (pixel < 0) continue;
    touches = true;
    float weights[kAxes];
    for (int a = 0; a < kAxes; ++a) weights[a] = taps.weight[a][of[a]][i];
    if (band.sums != nullptr) {
      float weight = weights[0] * weights[1];
      if constexpr (kAxes == 3) weight *= weights[2];
      if (weight != 0) {
        BlockSum sum;
        float* const to = band.sums + pixel * band.pitch;
        sum.Load(to);
        sum.Add(g, weight);
        sum.Store(1, to);
      }
    }
    if (kPerAxis > 1 && band.value != nullptr) {
      for (int a = 0; a < kAxes; ++a) {
        float slope = taps.slope[a][of[a]][i];
        for (int b = 0; b < kAxes; ++b) slope *= b == a ? 1 : weights[b];
        slopes[a].Add(band.value + pixel * band.pitch, slope);
      }
    }
  }
  if (kPerAxis == 1 || band.value == nullptr) return;
  std::fill_n(grad_point, kAxes, 0.0f);
  if (!touches) return;  // 0 times a NaN gradient would be NaN
  for (int a = 0; a < kAxes; ++a) {
    auto products = hn::Mul(g.v[0], slopes[a].v[0]);
    for (int64_t v = 1; v < kBlockVectors; ++v) products = hn::MulAdd(g.v[v], slopes[a].v[v], products);
    grad_point[a] = hn::ReduceSum(BlockTag(), products);
  }
}

// One image: 16 channels and a band of rows are a work item. Items write different gradients of the image, and have
// sums of the points' gradients, which are added at the end. Memory is bounded by working on a few items at a time.
template <int kAxes, int kPerAxis, class T>
Status OneImageBackward(const Context& context, const Axis* axes, const T* grad_output, const T* image,
                        int64_t channels, const float* grid, int64_t points, T* grad_image, T* grad_grid) {
  constexpr int64_t kBytes = 64 << 20, kBandBytes = 8 << 20, kEnoughItems = 4, kMinRows = 8;
  const bool of_grid = kPerAxis > 1 && grad_grid != nullptr, of_image = grad_image != nullptr;
  const int64_t width = axes[0].extent, rows = axes[1].extent * (kAxes == 3 ? axes[2].extent : 1);
  const int64_t pixels = rows * width, blocks = ChannelBlocks::BlocksFor(channels);
  const int64_t pitch = kBlockChannels * ((of_image ? 1 : 0) + (of_grid ? 1 : 0));
  const int64_t row_bytes = width * pitch * static_cast<int64_t>(sizeof(float));
  int64_t band_rows = std::clamp<int64_t>(kBandBytes / std::max<int64_t>(row_bytes, 1), 1, rows);
  if (blocks < kEnoughItems) {
    const int64_t bands = (kEnoughItems + blocks - 1) / blocks;
    band_rows = std::min(band_rows, std::max((rows + bands - 1) / bands, std::min(rows, kMinRows)));
  }
  const int64_t bands = (rows + band_rows - 1) / band_rows, items = blocks * bands;
  const int64_t band_size = band_rows * width * pitch, sums_size = of_grid ? points * kAxes : 0;
  const int64_t at_once = std::clamp<int64_t>(kBytes / ((band_size + sums_size) * static_cast<int64_t>(sizeof(float))),
                                              1, std::min(items, Context::kMaxTasks));
  const Scratch<float> memory = context.Allocate<float>(at_once * band_size);
  const Scratch<float> partial = context.Allocate<float>(at_once * sums_size);
  const Scratch<float> total = context.Allocate<float>(sums_size);
  if (!memory || !partial || !total) return Internal("out of memory: ", at_once, " bands of ", band_size, " elements");
  for (int64_t first_item = 0; first_item < items; first_item += at_once) {
    const int64_t some = std::min(at_once, items - first_item);
    context.ParallelFor(some, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
      ChunkTaps<kAxes, kPerAxis> taps;
      HWY_ALIGN float tile[kChunk * kBlockChannels];
      for (int64_t slot = begin; slot < end; ++slot) {
        const int64_t item = first_item + slot, first = item / bands * kBlockChannels, row = item % bands * band_rows;
        const int64_t held = std::min(kBlockChannels, channels - first);
        float* const at = memory.data() + slot * band_size;
        const PixelBand band{of_grid ? at : nullptr, of_image ? at + (of_grid ? kBlockChannels : 0) : nullptr,
                             row * width, (std::min(rows, row + band_rows) - row) * width, pitch};
        std::fill_n(at, band.count * pitch, 0.0f);
        if (of_grid) InterleaveChannels(image + first * pixels + band.begin, held, pixels, band.count, at, pitch);
        float* const grad_points = partial.data() + slot * sums_size;
        for (int64_t p = 0; p < points; p += kChunk) {
          const int64_t count = std::min(kChunk, points - p);
          taps.Find(axes, grid + p * kAxes, count);
          InterleaveChannels(grad_output + first * points + p, held, points, count, tile);
          for (int64_t i = 0; i < count; ++i) {
            AddPoint(taps, i, axes, tile + i * kBlockChannels, band, grad_points + (p + i) * kAxes);
          }
        }
        if (of_image) {
          WriteChannels(band.sums, band.count, held, pixels, grad_image + first * pixels + band.begin, pitch);
        }
      }
    });
    if (!of_grid) continue;
    context.ParallelFor(sums_size, GrainFor(0.3 * static_cast<double>(some)), [&](int64_t begin, int64_t end) {
      for (int64_t s = 0; s < some; ++s) {
        const float* const from = partial.data() + s * sums_size;
        for (int64_t i = begin; i < end; ++i) total[i] = first_item + s == 0 ? from[i] : total[i] + from[i];
      }
    });
  }
  if (of_grid) {
    context.ParallelFor(sums_size, 1 << 14, [&](int64_t begin, int64_t end) HWY_ATTR {
      NarrowRow(total.data() + begin, end - begin, grad_grid + begin);
    });
  }
  return Status::Ok();
}

template <int kAxes, class T>
Status ImagesBackward(const Context& context, const GridRule& rule, const Tensor<const T, kAxes + 2>& grad_output,
                      const Tensor<const T, kAxes + 2>& input, const float* grid, T* grad_input, T* grad_grid) {
  const int64_t channels = input.dim(1), pixels = PlanePixels(input.shape()), points = PlanePixels(grad_output.shape());
  const bool nothing = grad_output.size() == 0 || pixels == 0;
  const bool no_slopes = nothing || rule.interpolation_mode == GridRule::Interpolation::kNearest;
  if (grad_grid != nullptr && no_slopes) std::fill_n(grad_grid, input.dim(0) * points * kAxes, T{});
  if (grad_input != nullptr && nothing) std::fill_n(grad_input, input.size(), T{});
  if (nothing || (grad_input == nullptr && (grad_grid == nullptr || no_slopes))) return Status::Ok();
  Axis axes[kAxes];
  for (int a = 0; a < kAxes; ++a) axes[a] = {rule.padding_mode, rule.align_corners, input.dim(kAxes + 1 - a)};
  const auto one_image = [&] {
    switch (rule.interpolation_mode) {
      case GridRule::Interpolation::kNearest: return OneImageBackward<kAxes, 1, T>;
      case GridRule::Interpolation::kBilinear: return OneImageBackward<kAxes, 2, T>;
      case GridRule::Interpolation::kBicubic: break;
    }
    return OneImageBackward < kAxes, kAxes == 2 ? 4 : 2, T > ;
  }();
  for (int64_t n = 0; n < input.dim(0); ++n) {
    POLYOP_RETURN_IF_ERROR(one_image(context, axes, grad_output.data() + n * channels * points,
                                     input.data() + n * channels * pixels, channels, grid + n * points * kAxes, points,
                                     grad_input == nullptr ? nullptr : grad_input + n * channels * pixels,
                                     grad_grid == nullptr ? nullptr : grad_grid + n * points * kAxes));
  }
  return Status::Ok();
}

// Dispatch tables take templates with one argument.
template <class T>
Status PlanesBackward(const Context& context, const GridRule& rule, const Tensor<const T, 4>& grad_output,
                      const Tensor<const T, 4>& input, const float* points, T* grad_input, T* grad_points) {
  return ImagesBackward<2, T>(context, rule, grad_output, input, points, grad_input, grad_points);
}
template <class T>
Status SpacesBackward(const Context& context, const GridRule& rule, const Tensor<const T, 5>& grad_output,
                      const Tensor<const T, 5>& input, const float* points, T* grad_input, T* grad_points) {
  return ImagesBackward<3, T>(context, rule, grad_output, input, points, grad_input, grad_points);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PlanesBackward, PlanesBackward);
POLYOP_SIMD_TABLES(SpacesBackward, SpacesBackward);

template <class T>
Status Sample2dBackward(const Context& context, const GridRule& rule, const Tensor<const T, 4>& grad_output,
                        const Tensor<const T, 4>& input, const float* points, T* grad_input, T* grad_points) {
  return POLYOP_SIMD(PlanesBackward, T)(context, rule, grad_output, input, points, grad_input, grad_points);
}
POLYOP_FOR_FLOATS(Sample2dBackward);

template <class T>
Status Sample3dBackward(const Context& context, const GridRule& rule, const Tensor<const T, 5>& grad_output,
                        const Tensor<const T, 5>& input, const float* points, T* grad_input, T* grad_points) {
  return POLYOP_SIMD(SpacesBackward, T)(context, rule, grad_output, input, points, grad_input, grad_points);
}
POLYOP_FOR_FLOATS(Sample3dBackward);
}  // namespace polyop
#endif
