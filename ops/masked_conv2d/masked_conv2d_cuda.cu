#include "kernels/cuda/cuda.h"
#include "kernels/cuda/prefix_sums.h"
#include "kernels/cuda/tile_product.h"
#include "ops/masked_conv2d/masked_conv2d.h"

namespace polyop {
namespace {

template <class M>
POLYOP_HD bool IsPositive(M mask) {
  if constexpr (std::is_same_v<M, bool>) {
    return mask;
  } else {
    return ToFloat(mask) > 0;
  }
}

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
  int64_t* const before = cuda.Allocate<int64_t>(pixels);
  int64_t* const listed = cuda.Allocate<int64_t>(pixels);
  int64_t* const total = cuda.Allocate<int64_t>(1);
  const T *const from = features.data(), *const filter_data = weight.data();
  const T* const start = bias ? bias->data() : nullptr;
  const M* const masks = mask.data();
  T* const to = output.data();
  POLYOP_RETURN_IF_ERROR(PrefixSums(
      cuda, pixels, [=] POLYOP_HD(int64_t i) { return static_cast<int64_t>(IsPositive(masks[i])); }, before, total));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, pixels, [=] POLYOP_DEVICE(int64_t i) {
    if (IsPositive(masks[i])) listed[before[i]] = i;
  }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, filters * pixels, [=] POLYOP_DEVICE(int64_t i) { to[i] = FromFloat<T>(0); }));
  return ForTiles<T>(cuda, 1, filters, pixels, 0, [=] POLYOP_DEVICE(Block&, Product& product, const Tile& tile) {
    if (tile.column >= *total) return;
    const int64_t rest = *total - tile.column, columns = rest < tile.columns ? rest : tile.columns;
    const int64_t* const tile_pixels = listed + tile.column;
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
