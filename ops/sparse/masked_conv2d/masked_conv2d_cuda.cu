// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/tile_product.h"
#include "ops/sparse/masked_conv2d/masked_conv2d.h"
#include "ops/sparse/masked_conv2d/masked_pixels_cuda.h"

namespace polyop {
namespace {

// Lists the pixels of the mask; then each thread block computes a tile of filters x listed pixels. Blocks beyond the
// end of the list have nothing to do.
template <class T, class M>
Status MaskedConvCuda(const MaskedConv2d& op, const CudaContext& cuda, Tensor<const T, 4> features,
                      Tensor<const M, 3> mask, Tensor<const T, 4> weight, std::optional<Tensor<const T, 1>> bias,
                      Tensor<T, 4> output) {
  using Product = TileProduct<T>;
  const int64_t channels = features.dim(1), height = features.dim(2), width = features.dim(3);
  const int64_t filters = weight.dim(0), kernel_width = weight.dim(3), points = weight.dim(2) * kernel_width;
  const int64_t out_width = output.dim(3), pixels = output.dim(2) * out_width;
  const int64_t pad_y = op.padding[0], pad_x = op.padding[1];
  const T *const from = features.data(), *const filter_data = weight.data();
  const T* const start = bias ? bias->data() : nullptr;
  T* const to = output.data();
  MaskedPixelsCuda masked;
  POLYOP_RETURN_IF_ERROR(MaskedPixelsCuda::List(cuda, mask.data(), pixels, &masked));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, filters * pixels, [=] POLYOP_DEVICE(int64_t i) { to[i] = FromFloat<T>(0); }));
  return ForTiles<T>(cuda, 1, filters, pixels, 0, [=] POLYOP_DEVICE(Block&, Product& product, const Tile& tile) {
    if (tile.column >= *masked.total) return;
    const int64_t rest = *masked.total - tile.column, columns = rest < tile.columns ? rest : tile.columns;
    const int64_t* const tile_pixels = masked.listed + tile.column;
    const T* const rows = filter_data + tile.row * channels * points;
    for (int64_t point = 0; point < points; ++point) {
      const int64_t down = point / kernel_width - pad_y, across = point % kernel_width - pad_x;
      for (int64_t channel = 0; channel < channels; channel += Product::kDepth) {
        product.template Add<Product::Order::kDeep, Product::Order::kAlong>(
            [&](int k, int filter) {
              if (channel + k >= channels || filter >= tile.rows) return 0.0f;
              return ToFloat(rows[(filter * channels + channel + k) * points + point]);
            },
            [&](int k, int i) {
              if (channel + k >= channels || i >= columns) return 0.0f;
              const int64_t y = tile_pixels[i] / out_width + down, x = tile_pixels[i] % out_width + across;
              if (y < 0 || y >= height || x < 0 || x >= width) return 0.0f;
              return ToFloat(from[((channel + k) * height + y) * width + x]);
            });
      }
    }
    product.Store([&](int row, int i, float sum) {
      if (row >= tile.rows || i >= columns) return;
      const int64_t filter = tile.row + row;
      to[filter * pixels + tile_pixels[i]] = FromFloat<T>(sum + (start != nullptr ? ToFloat(start[filter]) : 0));
    });
  });
}

POLYOP_CUDA_KERNELS(MaskedConv2d, MaskedConvCuda, (float, float), (float, bool), (Half, Half), (Half, bool),
                    (BFloat16, BFloat16), (BFloat16, bool));

}  // namespace
}  // namespace polyop
