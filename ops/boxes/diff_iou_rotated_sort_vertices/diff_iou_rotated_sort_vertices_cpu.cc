// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/diff_iou_rotated_sort_vertices/diff_iou_rotated_sort_vertices.h"
#include "ops/boxes/diff_iou_rotated_sort_vertices/sort_vertices.h"

namespace polyop {
namespace {

template <class T>
Status SortVerticesCpu(const DiffIouRotatedSortVertices&, const Context& context, Tensor<const T, 4> vertices,
                       Tensor<const bool, 3> mask, Tensor<const int32_t, 2> num_valid, Tensor<int32_t, 3> idx) {
  context.ParallelFor(num_valid.size(), GrainFor(150), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      SortVertices(vertices.data() + 48 * i, mask.data() + 24 * i, num_valid[i], idx.data() + 9 * i);
    }
  });
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(DiffIouRotatedSortVertices, SortVerticesCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
