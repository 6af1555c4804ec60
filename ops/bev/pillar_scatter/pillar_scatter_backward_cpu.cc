// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/words.h"
#include "ops/bev/pillar_scatter/pillar_scatter_backward.h"
#include "ops/bev/pillar_scatter/placed_pillars.h"

namespace polyop {
namespace {

// The gradients are copies, so that the elements' words are moved.
template <class Word, class I>
Status GatherPillars(const Context& context, const Word* canvas, const Shape& shape, const I* coords, int64_t images,
                     int64_t count, const I* num, Word* to) {
  constexpr int64_t kChannels = 64, kNone = -1;  // few channels, whose pages of the canvas stay in the TLB
  const int64_t channels = shape[1], cells = shape[2] * shape[3], pillars = images * count;
  // The position of each pillar in the canvas' planes of channel 0, and the last pillar of each position.
  const Scratch<int64_t> position = context.Allocate<int64_t>(pillars);
  const Scratch<int32_t> last = context.Allocate<int32_t>(shape[0] * cells);
  if (!position || !last) return Internal("out of memory: ", pillars, " pillars and ", shape[0] * cells, " cells");
  std::fill_n(position.data(), pillars, kNone);
  POLYOP_RETURN_IF_ERROR(ForEachPillar(coords, images, count, num, shape, [&](int64_t image, PlacedPillar pillar) {
    position[pillar.row] = image * channels * cells + pillar.cell;
    last[image * cells + pillar.cell] = static_cast<int32_t>(pillar.row);
  }));
  for (int64_t p = 0; p < pillars; ++p) {
    if (position[p] == kNone) continue;
    const int64_t image = position[p] / (channels * cells), cell = position[p] % (channels * cells);
    if (last[image * cells + cell] != p) position[p] = kNone;
  }
  const int64_t groups = (channels + kChannels - 1) / kChannels;
  const double nanoseconds = 3 * static_cast<double>(std::min(channels, kChannels));
  context.ParallelFor(groups * pillars, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t p = item % pillars, first = item / pillars * kChannels;
      const int64_t stop = std::min(channels, first + kChannels);
      Word* const row = to + p * channels;
      if (position[p] == kNone) {
        std::fill(row + first, row + stop, Word{0});
        continue;
      }
      for (int64_t c = first; c < stop; ++c) row[c] = canvas[position[p] + c * cells];
    }
  });
  return Status::Ok();
}

template <class T>
const WordOf<T>* Words(const T* data) {
  return reinterpret_cast<const WordOf<T>*>(data);
}
template <class T>
WordOf<T>* Words(T* data) {
  return reinterpret_cast<WordOf<T>*>(data);
}

template <class T, class I>
Status PillarScatterBackwardCpu(const PillarScatterBackward&, const Context& context, Tensor<const T, 4> grad_canvas,
                                Tensor<const T, 2> features, Tensor<const I, 2> coords,
                                std::optional<Tensor<const I, 1>> num, Tensor<T, 2> grad_features) {
  return GatherPillars(context, Words(grad_canvas.data()), grad_canvas.shape(), coords.data(), 1, features.dim(0),
                       num ? num->data() : nullptr, Words(grad_features.data()));
}

template <class T, class I>
Status PillarScatterOfImagesBackward(const PillarScatterBackward&, const Context& context,
                                     Tensor<const T, 4> grad_canvas, Tensor<const T, 3> features,
                                     Tensor<const I, 3> coords, Tensor<const I, 1> num, Tensor<T, 3> grad_features) {
  return GatherPillars(context, Words(grad_canvas.data()), grad_canvas.shape(), coords.data(), features.dim(0),
                       features.dim(1), num.data(), Words(grad_features.data()));
}

POLYOP_PLAIN_CPU_KERNELS(PillarScatterBackward, PillarScatterBackwardCpu, (float, int32_t), (float, int64_t),
                         (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));
POLYOP_PLAIN_CPU_KERNELS(PillarScatterBackward, PillarScatterOfImagesBackward, (float, int32_t), (float, int64_t),
                         (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
