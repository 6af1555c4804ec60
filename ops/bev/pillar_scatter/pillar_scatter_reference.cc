// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/bev/pillar_scatter/pillar_scatter.h"
#include "ops/bev/pillar_scatter/pillar_scatter_values.h"

namespace polyop {
namespace {

// Writes pillar number `p`, whose row of coordinates is `position`, to `image`.
template <class I>
Status Put(int64_t p, const double* pillar, const I* position, int64_t image, const Tensor<double, 4>& canvas) {
  const int64_t y = position[2], x = position[3];
  POLYOP_RETURN_IF_ERROR(CheckPosition(p, image, y, x, canvas.shape()));
  for (int64_t c = 0; c < canvas.dim(1); ++c) {
    canvas[((image * canvas.dim(1) + c) * canvas.dim(2) + y) * canvas.dim(3) + x] = pillar[c];
  }
  return Status::Ok();
}

template <class I>
Status PillarScatterReference(const PillarScatter&, const Context&, Tensor<const double, 2> features,
                              Tensor<const I, 2> coords, std::optional<Tensor<const I, 1>> num,
                              Tensor<double, 4> canvas) {
  std::fill_n(canvas.data(), canvas.size(), 0.0);
  const int64_t used = num ? int64_t{(*num)[0]} : features.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckUsed(used, features.dim(0)));
  for (int64_t p = 0; p < used; ++p) {
    const I* const position = coords.data() + 4 * p;
    POLYOP_RETURN_IF_ERROR(
        Put(p, features.data() + p * features.dim(1), position, num ? 0 : int64_t{position[0]}, canvas));
  }
  return Status::Ok();
}

template <class I>
Status PillarScatterOfImages(const PillarScatter&, const Context&, Tensor<const double, 3> features,
                             Tensor<const I, 3> coords, Tensor<const I, 1> num, Tensor<double, 4> canvas) {
  std::fill_n(canvas.data(), canvas.size(), 0.0);
  const int64_t count = features.dim(1), channels = features.dim(2);
  for (int64_t n = 0; n < features.dim(0); ++n) {
    POLYOP_RETURN_IF_ERROR(CheckUsed(num[n], count));
    for (int64_t p = 0; p < num[n]; ++p) {
      POLYOP_RETURN_IF_ERROR(Put(n * count + p, features.data() + (n * count + p) * channels,
                                 coords.data() + 4 * (n * count + p), n, canvas));
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(PillarScatter, PillarScatterReference, int32_t, int64_t);
POLYOP_REFERENCE_KERNELS(PillarScatter, PillarScatterOfImages, int32_t, int64_t);

}  // namespace
}  // namespace polyop
