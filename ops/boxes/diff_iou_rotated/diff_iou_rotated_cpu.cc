// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated.h"
#include "ops/boxes/diff_iou_rotated/rotated_iou.h"

namespace polyop {
namespace {

template <class T>
Status DiffIouRotatedCpu(const DiffIouRotated& op, const Context& context, Tensor<const T, 3> boxes_a,
                         Tensor<const T, 3> boxes_b, Tensor<T, 2> iou) {
  const int64_t columns = boxes_a.dim(2);
  context.ParallelFor(iou.size(), GrainFor(1000), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const DiffIouBox a = DiffIouBox::Of(boxes_a.data() + i * columns, op.dimensions);
      const DiffIouBox b = DiffIouBox::Of(boxes_b.data() + i * columns, op.dimensions);
      iou.data()[i] = FromFloat<T>(static_cast<float>(DiffIou(a, b)));
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(DiffIouRotated, DiffIouRotatedCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
