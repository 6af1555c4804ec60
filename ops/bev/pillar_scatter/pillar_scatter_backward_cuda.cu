// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "ops/bev/pillar_scatter/pillar_owners_cuda.h"
#include "ops/bev/pillar_scatter/pillar_scatter_backward.h"

namespace polyop {
namespace {

// Each thread copies one element of a pillar from the canvas, as a word; 0 if the canvas does not show the pillar.
template <class T, class I>
Status GatherPillarsCuda(const CudaContext& cuda, Tensor<const T, 4> canvas, const PillarsCuda<I>& pillars,
                         T* grad_features) {
  using Word = WordOf<T>;
  const int64_t* owner = nullptr;
  POLYOP_RETURN_IF_ERROR(FindPillarOwners(cuda, pillars, &owner));
  const int64_t channels = canvas.dim(1);
  const Divider by_channels(channels), by_cells(canvas.dim(2) * canvas.dim(3));
  const auto* const from = reinterpret_cast<const Word*>(canvas.data());
  auto* const to = reinterpret_cast<Word*>(grad_features);
  return ForEach(cuda, pillars.pillars * channels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t channel, in_image;
    const int64_t p = by_channels.Split(i, &channel), cell = pillars.CellOf(p);
    to[i] = 0;
    if (cell < 0 || owner[cell] != p) return;
    const int64_t image = by_cells.Split(cell, &in_image);
    to[i] = from[(image * channels + channel) * by_cells.divisor() + in_image];
  });
}

template <class T, class I>
Status PillarScatterBackwardCuda(const PillarScatterBackward&, const CudaContext& cuda, Tensor<const T, 4> grad_canvas,
                                 Tensor<const T, 2> features, Tensor<const I, 2> coords,
                                 std::optional<Tensor<const I, 1>> num, Tensor<T, 2> grad_features) {
  const auto pillars = PillarsCuda<I>::Of(coords.data(), num ? num->data() : nullptr, features.dim(0), features.dim(0),
                                          grad_canvas.shape());
  return GatherPillarsCuda<T>(cuda, grad_canvas, pillars, grad_features.data());
}

template <class T, class I>
Status PillarScatterOfImagesBackwardCuda(const PillarScatterBackward&, const CudaContext& cuda,
                                         Tensor<const T, 4> grad_canvas, Tensor<const T, 3> features,
                                         Tensor<const I, 3> coords, Tensor<const I, 1> num,
                                         Tensor<T, 3> grad_features) {
  const auto pillars = PillarsCuda<I>::Of(coords.data(), num.data(), features.dim(1), features.dim(0) * features.dim(1),
                                          grad_canvas.shape());
  return GatherPillarsCuda<T>(cuda, grad_canvas, pillars, grad_features.data());
}

POLYOP_CUDA_KERNELS(PillarScatterBackward, PillarScatterBackwardCuda, (float, int32_t), (float, int64_t),
                    (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));
POLYOP_CUDA_KERNELS(PillarScatterBackward, PillarScatterOfImagesBackwardCuda, (float, int32_t), (float, int64_t),
                    (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
