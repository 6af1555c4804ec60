// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated/diff_iou_rotated_backward.h"
#include "ops/boxes/diff_iou_rotated/rotated_iou.h"

namespace polyop {
namespace {

template <class T>
Status DiffIouRotatedBackwardCpu(const DiffIouRotatedBackward& op, const Context& context, Tensor<const T, 2> grad_iou,
                                 Tensor<const T, 3> boxes_a, Tensor<const T, 3> boxes_b,
                                 std::optional<Tensor<T, 3>> grad_boxes_a, std::optional<Tensor<T, 3>> grad_boxes_b) {
  const int64_t columns = boxes_a.dim(2);
  context.ParallelFor(grad_iou.size(), GrainFor(1000), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const DiffIouBox a = DiffIouBox::Of(boxes_a.data() + i * columns, op.dimensions);
      const DiffIouBox b = DiffIouBox::Of(boxes_b.data() + i * columns, op.dimensions);
      DiffIouSlope of_a, of_b;
      DiffIouGradient(a, b, ToFloat(grad_iou.data()[i]), &of_a, &of_b);
      if (grad_boxes_a) of_a.Write(op.dimensions, grad_boxes_a->data() + i * columns);
      if (grad_boxes_b) of_b.Write(op.dimensions, grad_boxes_b->data() + i * columns);
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(DiffIouRotatedBackward, DiffIouRotatedBackwardCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
