// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/boxes/diff_iou_rotated_sort_vertices/diff_iou_rotated_sort_vertices.h"
#include "ops/boxes/diff_iou_rotated_sort_vertices/sort_vertices.h"

namespace polyop {
namespace {

template <class T>
Status SortVerticesCuda(const DiffIouRotatedSortVertices&, const CudaContext& cuda, Tensor<const T, 4> vertices,
                        Tensor<const bool, 3> mask, Tensor<const int32_t, 2> num_valid, Tensor<int32_t, 3> idx) {
  const T* const from = vertices.data();
  const bool* const masks = mask.data();
  const int32_t* const valid = num_valid.data();
  int32_t* const to = idx.data();
  return ForEach(cuda, num_valid.size(),
                 [=] POLYOP_DEVICE(int64_t i) { SortVertices(from + 48 * i, masks + 24 * i, valid[i], to + 9 * i); });
}

POLYOP_CUDA_KERNELS(DiffIouRotatedSortVertices, SortVerticesCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
