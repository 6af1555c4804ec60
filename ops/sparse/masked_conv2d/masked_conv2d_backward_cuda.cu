// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/set_zero.h"
#include "kernels/cuda/split_sums.h"
#include "kernels/cuda/tile_product.h"
#include "ops/sparse/masked_conv2d/masked_conv2d_backward.h"
#include "ops/sparse/masked_conv2d/masked_pixels_cuda.h"

namespace polyop {
namespace {

template <class T, class M>
struct MaskedSizes {
  const T *grads, *features, *weight;
  const M* mask;
  int64_t channels, height, width, filters, kernel_width, points, rows, columns;  // rows and columns of the output
  int64_t padding[2];

  POLYOP_HD int64_t pixels() const { return height * width; }
  POLYOP_HD int64_t out_pixels() const { return rows * columns; }
  POLYOP_HD float Weight(int64_t filter, int64_t channel, int64_t point) const {
    return ToFloat(weight[(filter * channels + channel) * points + point]);
  }
  // Returns the pixel of the features under a point of the filter, or -1.
  POLYOP_HD int64_t PixelOf(int64_t out, int64_t point) const {
    const int64_t y = out / columns + point / kernel_width - padding[0];
    const int64_t x = out % columns + point % kernel_width - padding[1];
    return y >= 0 && y < height && x >= 0 && x < width ? y * width + x : -1;
  }
  // Returns the masked output pixel whose filter has this point on a pixel of the features, or -1.
  POLYOP_HD int64_t OutputOf(int64_t pixel, int64_t point) const {
    const int64_t y = pixel / width - point / kernel_width + padding[0];
    const int64_t x = pixel % width - point % kernel_width + padding[1];
    if (y < 0 || y >= rows || x < 0 || x >= columns) return -1;
    return IsMasked(mask[y * columns + x]) ? y * columns + x : -1;
  }
};

// Each block computes a tile of channels x pixels. It skips the points of the filter for which no pixel has a masked
// output.
template <class T, class M>
Status FeaturesBackward(const CudaContext& cuda, const MaskedSizes<T, M>& s, T* grad_features) {
  using Product = TileProduct<T>;
  constexpr int kColumns = Product::kColumns;
  return ForTiles<T>(cuda, 1, s.channels, s.pixels(), (kColumns + 1) * 8 + 16,
                     [=] POLYOP_DEVICE(Block& block, Product& product, const Tile& tile) {
                       int64_t* const from = block.Shared<int64_t>(kColumns);  // the output of each pixel, or -1
                       int64_t* const last = block.Shared<int64_t>(1);         // the maximum of them
                       for (int64_t point = 0; point < s.points; ++point) {
                         block.ForThreads([&](int t) {
                           if (t == 0) *last = -1;
                         });
                         block.ForThreads([&](int t) {
                           for (int column = t; column < kColumns; column += block.threads()) {
                             from[column] = column < tile.columns ? s.OutputOf(tile.column + column, point) : -1;
                             if (from[column] >= 0) AtomicMax(last, from[column]);
                           }
                         });
                         const bool none = *last < 0;
                         for (int64_t filter = 0; !none && filter < s.filters; filter += Product::kDepth) {
                           product.template Add<Product::Order::kAlong, Product::Order::kAlong>(
                               [&](int k, int row) {
                                 if (filter + k >= s.filters || row >= tile.rows) return 0.0f;
                                 return s.Weight(filter + k, tile.row + row, point);
                               },
                               [&](int k, int column) {
                                 if (filter + k >= s.filters || from[column] < 0) return 0.0f;
                                 return ToFloat(s.grads[(filter + k) * s.out_pixels() + from[column]]);
                               });
                         }
                         block.ForThreads([](int) {});  // all have read *last
                       }
                       product.Store([&](int row, int column, float sum) {
                         if (row >= tile.rows || column >= tile.columns) return;
                         grad_features[(tile.row + row) * s.pixels() + tile.column + column] = FromFloat<T>(sum);
                       });
                     });
}

// Each block computes a tile of filters x channels of one point, for a part of the masked pixels.
template <class T, class M>
Status WeightBackward(const CudaContext& cuda, const MaskedSizes<T, M>& s, const MaskedPixelsCuda& masked,
                      T* grad_weight) {
  using Product = TileProduct<T>;
  constexpr int kPixels = 64;
  const int64_t tiles = BlocksFor(s.filters, Product::RowsFor(s.filters)) * BlocksFor(s.channels, Product::kColumns);
  const SplitSums sums =
      SplitSums::Allocate(cuda, s.filters * s.channels * s.points, s.points * tiles, s.out_pixels() / (2 * kPixels));
  const Divider by_points(s.points);
  POLYOP_RETURN_IF_ERROR(ForTiles<T>(
      cuda, sums.parts * s.points, s.filters, s.channels, 2 * kPixels * 8 + 16,
      [=] POLYOP_DEVICE(Block& block, Product& product, const Tile& tile) {
        int64_t* const outs = block.Shared<int64_t>(kPixels);
        int64_t* const pixels = block.Shared<int64_t>(kPixels);  // of the features, or -1
        int64_t point;
        const int64_t part = by_points.Split(tile.matrix, &point), end = sums.Begin(part + 1, *masked.total);
        for (int64_t first = sums.Begin(part, *masked.total); first < end; first += kPixels) {
          const int64_t held = end - first < kPixels ? end - first : kPixels;
          block.ForThreads([&](int t) {
            for (int64_t p = t; p < kPixels; p += block.threads()) {
              outs[p] = p < held ? masked.listed[first + p] : 0;
              pixels[p] = p < held ? s.PixelOf(outs[p], point) : -1;
            }
          });
          for (int64_t p = 0; p < held; p += Product::kDepth) {
            product.template Add<Product::Order::kDeep, Product::Order::kDeep>(
                [&](int k, int row) {
                  if (pixels[p + k] < 0 || row >= tile.rows) return 0.0f;
                  return ToFloat(s.grads[(tile.row + row) * s.out_pixels() + outs[p + k]]);
                },
                [&](int k, int column) {
                  if (pixels[p + k] < 0 || column >= tile.columns) return 0.0f;
                  return ToFloat(s.features[(tile.column + column) * s.pixels() + pixels[p + k]]);
                });
          }
        }
        product.Store([&](int row, int column, float sum) {
          if (row >= tile.rows || column >= tile.columns) return;
          sums.Part(part)[((tile.row + row) * s.channels + tile.column + column) * s.points + point] = sum;
        });
      }));
  return sums.Round(cuda, grad_weight);
}

template <class T, class M>
Status MaskedConvBackwardCuda(const MaskedConv2dBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                              Tensor<const T, 4> features, Tensor<const M, 3> mask, Tensor<const T, 4> weight,
                              std::optional<Tensor<const T, 1>>, std::optional<Tensor<T, 4>> grad_features,
                              std::optional<Tensor<T, 4>> grad_weight, std::optional<Tensor<T, 1>> grad_bias) {
  const MaskedSizes<T, M> s{grad_output.data(),
                            features.data(),
                            weight.data(),
                            mask.data(),
                            features.dim(1),
                            features.dim(2),
                            features.dim(3),
                            weight.dim(0),
                            weight.dim(3),
                            weight.dim(2) * weight.dim(3),
                            grad_output.dim(2),
                            grad_output.dim(3),
                            {op.padding[0], op.padding[1]}};
  const int64_t pixels = s.out_pixels();
  if (grad_bias) {
    T* const to = grad_bias->data();
    POLYOP_RETURN_IF_ERROR(SumByBlocks(
        cuda, s.filters, pixels,
        [=] POLYOP_DEVICE(int64_t filter, int64_t p) {
          return IsMasked(s.mask[p]) ? ToFloat(s.grads[filter * pixels + p]) : 0.0f;
        },
        [=] POLYOP_DEVICE(int64_t filter, float sum) { to[filter] = FromFloat<T>(sum); }));
  }
  if (grad_output.size() == 0) {  // the other extents may be huge
    if (grad_features) POLYOP_RETURN_IF_ERROR(SetZero(cuda, features.size(), grad_features->data()));
    return grad_weight ? SetZero(cuda, weight.size(), grad_weight->data()) : cuda.Check();
  }
  if (grad_features) POLYOP_RETURN_IF_ERROR(FeaturesBackward(cuda, s, grad_features->data()));
  if (!grad_weight) return cuda.Check();
  MaskedPixelsCuda masked;
  POLYOP_RETURN_IF_ERROR(MaskedPixelsCuda::List(cuda, mask.data(), pixels, &masked));
  return WeightBackward(cuda, s, masked, grad_weight->data());
}

POLYOP_CUDA_KERNELS(MaskedConv2dBackward, MaskedConvBackwardCuda, (float, float), (float, bool), (Half, Half),
                    (Half, bool), (BFloat16, BFloat16), (BFloat16, bool));

}  // namespace
}  // namespace polyop
