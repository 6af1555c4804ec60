#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/pillar_scatter/pillar_scatter.h"

namespace polyop {
namespace {

// First finds the pillar of each cell; then each thread writes one element. Positions outside the canvas are ignored,
// and a num out of range is clamped to the number of pillars.
template <class T, class I>
Status Scatter(const CudaContext& cuda, const T* features, const I* coords, const I* num, bool coords_say_image,
               int64_t of_image, int64_t pillars, Tensor<T, 4> canvas) {
  using Word = WordOf<T>;
  const int64_t images = canvas.dim(0), height = canvas.dim(2), width = canvas.dim(3), cells = height * width;
  int64_t* const owner = cuda.Allocate<int64_t>(images * cells);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, images * cells, [=] POLYOP_DEVICE(int64_t i) { owner[i] = -1; }));
  const Divider by_image(of_image);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, pillars, [=] POLYOP_DEVICE(int64_t p) {
    int64_t rank;
    const int64_t group = by_image.Split(p, &rank);
    if (num != nullptr && rank >= num[group]) return;
    const I* const row = coords + 4 * p;
    const int64_t image = coords_say_image ? int64_t{row[0]} : group, y = row[2], x = row[3];
    if (image < 0 || image >= images || y < 0 || y >= height || x < 0 || x >= width) return;
    AtomicMax(owner + image * cells + y * width + x, p);
  }));
  const int64_t channels = canvas.dim(1);
  const Divider by_cells(cells), by_channels(channels);
  const auto* const from = reinterpret_cast<const Word*>(features);
  auto* const to = reinterpret_cast<Word*>(canvas.data());
  return ForEach(cuda, canvas.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t cell, channel;
    const int64_t image = by_channels.Split(by_cells.Split(i, &cell), &channel);
    const int64_t p = owner[image * cells + cell];
    to[i] = p >= 0 ? from[p * channels + channel] : Word{0};
  });
}

template <class T, class I>
Status PillarScatterCuda(const PillarScatter&, const CudaContext& cuda, Tensor<const T, 2> features,
                         Tensor<const I, 2> coords, std::optional<Tensor<const I, 1>> num, Tensor<T, 4> canvas) {
  return Scatter(cuda, features.data(), coords.data(), num ? num->data() : nullptr, !num, features.dim(0),
                 features.dim(0), canvas);
}

template <class T, class I>
Status PillarScatterOfImages(const PillarScatter&, const CudaContext& cuda, Tensor<const T, 3> features,
                             Tensor<const I, 3> coords, Tensor<const I, 1> num, Tensor<T, 4> canvas) {
  return Scatter(cuda, features.data(), coords.data(), num.data(), false, features.dim(1),
                 features.dim(0) * features.dim(1), canvas);
}

POLYOP_CUDA_KERNELS(PillarScatter, PillarScatterCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));
POLYOP_CUDA_KERNELS(PillarScatter, PillarScatterOfImages, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
