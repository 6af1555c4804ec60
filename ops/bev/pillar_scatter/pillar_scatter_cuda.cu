// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "ops/bev/pillar_scatter/pillar_owners_cuda.h"
#include "ops/bev/pillar_scatter/pillar_scatter.h"

namespace polyop {
namespace {

// First finds the pillar of each cell; then each thread writes one element.
template <class T, class I>
Status Scatter(const CudaContext& cuda, const T* features, const PillarsCuda<I>& pillars, Tensor<T, 4> canvas) {
  using Word = WordOf<T>;
  const int64_t* owner = nullptr;
  POLYOP_RETURN_IF_ERROR(FindPillarOwners(cuda, pillars, &owner));
  const int64_t channels = canvas.dim(1);
  const Divider by_cells(canvas.dim(2) * canvas.dim(3)), by_channels(channels);
  const auto* const from = reinterpret_cast<const Word*>(features);
  auto* const to = reinterpret_cast<Word*>(canvas.data());
  return ForEach(cuda, canvas.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t cell, channel;
    const int64_t image = by_channels.Split(by_cells.Split(i, &cell), &channel);
    const int64_t p = owner[image * by_cells.divisor() + cell];
    to[i] = p >= 0 ? from[p * channels + channel] : Word{0};
  });
}

template <class T, class I>
Status PillarScatterCuda(const PillarScatter&, const CudaContext& cuda, Tensor<const T, 2> features,
                         Tensor<const I, 2> coords, std::optional<Tensor<const I, 1>> num, Tensor<T, 4> canvas) {
  const auto pillars =
      PillarsCuda<I>::Of(coords.data(), num ? num->data() : nullptr, features.dim(0), features.dim(0), canvas.shape());
  return Scatter(cuda, features.data(), pillars, canvas);
}

template <class T, class I>
Status PillarScatterOfImages(const PillarScatter&, const CudaContext& cuda, Tensor<const T, 3> features,
                             Tensor<const I, 3> coords, Tensor<const I, 1> num, Tensor<T, 4> canvas) {
  const auto pillars =
      PillarsCuda<I>::Of(coords.data(), num.data(), features.dim(1), features.dim(0) * features.dim(1), canvas.shape());
  return Scatter(cuda, features.data(), pillars, canvas);
}

POLYOP_CUDA_KERNELS(PillarScatter, PillarScatterCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));
POLYOP_CUDA_KERNELS(PillarScatter, PillarScatterOfImages, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
