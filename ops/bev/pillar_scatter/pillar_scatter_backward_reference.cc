// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "ops/bev/pillar_scatter/pillar_scatter_backward.h"
#include "ops/bev/pillar_scatter/pillar_scatter_values.h"

namespace polyop {
namespace {

// Computes the gradient of `images` times `count` pillars. Without `num`, the coordinates contain the image.
template <class I>
Status PillarsBackward(const Tensor<const double, 4>& grad_canvas, const I* coords, int64_t images, int64_t count,
                       const I* num, double* grad) {
  const Shape& shape = grad_canvas.shape();
  std::map<int64_t, int64_t> last;  // pillar of each position
  for (int64_t n = 0; n < images; ++n) {
    const int64_t used = num != nullptr ? int64_t{num[n]} : count;
    POLYOP_RETURN_IF_ERROR(CheckUsed(used, count));
    for (int64_t p = n * count; p < n * count + used; ++p) {
      const int64_t image = num != nullptr ? n : int64_t{coords[4 * p]}, y = coords[4 * p + 2], x = coords[4 * p + 3];
      POLYOP_RETURN_IF_ERROR(CheckPosition(p, image, y, x, shape));
      last[(image * shape[2] + y) * shape[3] + x] = p;
    }
  }
  for (int64_t i = 0; i < images * count * shape[1]; ++i) grad[i] = 0;
  const int64_t cells = shape[2] * shape[3];
  for (const auto& [position, p] : last) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      grad[p * shape[1] + c] = grad_canvas[(position / cells * shape[1] + c) * cells + position % cells];
    }
  }
  return Status::Ok();
}

template <class I>
Status PillarScatterBackwardReference(const PillarScatterBackward&, const Context&, Tensor<const double, 4> grad_canvas,
                                      Tensor<const double, 2> features, Tensor<const I, 2> coords,
                                      std::optional<Tensor<const I, 1>> num, Tensor<double, 2> grad_features) {
  return PillarsBackward(grad_canvas, coords.data(), 1, features.dim(0), num ? num->data() : nullptr,
                         grad_features.data());
}

template <class I>
Status PillarScatterOfImagesBackward(const PillarScatterBackward&, const Context&, Tensor<const double, 4> grad_canvas,
                                     Tensor<const double, 3> features, Tensor<const I, 3> coords,
                                     Tensor<const I, 1> num, Tensor<double, 3> grad_features) {
  return PillarsBackward(grad_canvas, coords.data(), features.dim(0), features.dim(1), num.data(),
                         grad_features.data());
}
POLYOP_REFERENCE_KERNELS(PillarScatterBackward, PillarScatterBackwardReference, int32_t, int64_t);
POLYOP_REFERENCE_KERNELS(PillarScatterBackward, PillarScatterOfImagesBackward, int32_t, int64_t);

}  // namespace
}  // namespace polyop
