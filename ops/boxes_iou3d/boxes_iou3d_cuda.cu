#include "families/boxes/boxes_of_space.h"
#include "kernels/cuda/cuda.h"
#include "ops/boxes_iou3d/boxes_iou3d.h"

namespace polyop {
namespace {

template <class T>
Status BoxesIou3dCuda(const BoxesIou3d& op, const CudaContext& cuda, Tensor<const T, 2> boxes_a,
                      Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  const int64_t rows = boxes_a.dim(0), columns = boxes_b.dim(0);
  const T *const from_a = boxes_a.data(), *const from_b = boxes_b.data();
  BoxOfSpace* const boxes = cuda.Allocate<BoxOfSpace>(rows + columns);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, rows + columns, [=] POLYOP_DEVICE(int64_t i) {
    boxes[i] = BoxOfSpace::Of(i < rows ? from_a + 7 * i : from_b + 7 * (i - rows));
  }));
  T* const to = overlap.data();
  const Divider by_columns(columns);
  return ForEach(cuda, overlap.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t k;
    const int64_t row = by_columns.Split(i, &k);
    to[i] = FromFloat<T>(static_cast<float>(op.Measure(boxes[row], boxes[rows + k])));
  });
}

POLYOP_CUDA_KERNEL(BoxesIou3d, BoxesIou3dF32, BoxesIou3dCuda<float>);
POLYOP_CUDA_KERNEL(BoxesIou3d, BoxesIou3dF16, BoxesIou3dCuda<Half>);
POLYOP_CUDA_KERNEL(BoxesIou3d, BoxesIou3dBF16, BoxesIou3dCuda<BFloat16>);

}  // namespace
}  // namespace polyop
