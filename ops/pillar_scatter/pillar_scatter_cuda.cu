#include "core/words.h"
#include "kernels/cuda/cuda.h"
#include "ops/pillar_scatter/pillar_scatter.h"

namespace polyop {
namespace {

// Which pillar each cell takes is found first; then a thread writes one element. A place outside of the canvas is not
// written; of a num out of range the pillars that there are take part.
template <class T, class I>
Status Scatter(const CudaContext& cuda, const T* features, const I* coords, const I* num, bool coords_say_picture,
               int64_t of_picture, int64_t pillars, Tensor<T, 4> canvas) {
  using Word = WordOf<T>;
  const int64_t pictures = canvas.dim(0), height = canvas.dim(2), width = canvas.dim(3), cells = height * width;
  int64_t* const owner = cuda.Allocate<int64_t>(pictures * cells);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, pictures * cells, [=] POLYOP_DEVICE(int64_t i) { owner[i] = -1; }));
  const Divider by_picture(of_picture);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, pillars, [=] POLYOP_DEVICE(int64_t p) {
    int64_t rank;
    const int64_t group = by_picture.Split(p, &rank);
    if (num != nullptr && rank >= num[group]) return;
    const I* const row = coords + 4 * p;
    const int64_t picture = coords_say_picture ? int64_t{row[0]} : group, y = row[2], x = row[3];
    if (picture < 0 || picture >= pictures || y < 0 || y >= height || x < 0 || x >= width) return;
    AtomicMax(owner + picture * cells + y * width + x, p);
  }));
  const int64_t channels = canvas.dim(1);
  const Divider by_cells(cells), by_channels(channels);
  const auto* const from = reinterpret_cast<const Word*>(features);
  auto* const to = reinterpret_cast<Word*>(canvas.data());
  return ForEach(cuda, canvas.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t cell, channel;
    const int64_t picture = by_channels.Split(by_cells.Split(i, &cell), &channel);
    const int64_t p = owner[picture * cells + cell];
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
Status PillarScatterOfPictures(const PillarScatter&, const CudaContext& cuda, Tensor<const T, 3> features,
                               Tensor<const I, 3> coords, Tensor<const I, 1> num, Tensor<T, 4> canvas) {
  return Scatter(cuda, features.data(), coords.data(), num.data(), false, features.dim(1),
                 features.dim(0) * features.dim(1), canvas);
}

#define POLYOP_PILLAR_SCATTER(T, I, NAME)                                          \
  POLYOP_CUDA_KERNEL(PillarScatter, PillarScatter##NAME, PillarScatterCuda<T, I>); \
  POLYOP_CUDA_KERNEL(PillarScatter, PillarScatterOfPictures##NAME, PillarScatterOfPictures<T, I>)
POLYOP_PILLAR_SCATTER(float, int32_t, F32I32);
POLYOP_PILLAR_SCATTER(float, int64_t, F32I64);
POLYOP_PILLAR_SCATTER(Half, int32_t, F16I32);
POLYOP_PILLAR_SCATTER(Half, int64_t, F16I64);
POLYOP_PILLAR_SCATTER(BFloat16, int32_t, BF16I32);
POLYOP_PILLAR_SCATTER(BFloat16, int64_t, BF16I64);
#undef POLYOP_PILLAR_SCATTER

}  // namespace
}  // namespace polyop
