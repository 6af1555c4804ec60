// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/line_scan.h"
#include "ops/feature_maps/corner_pool/corner_pool.h"

namespace polyop {
namespace {

template <class T>
Status CornerPoolCuda(const CornerPool& op, const CudaContext& cuda, Tensor<const T, 4> input, Tensor<T, 4> output) {
  const int64_t planes = input.dim(0) * input.dim(1), height = input.dim(2), width = input.dim(3);
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool reverse = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  const Lines lines = vertical ? Lines{planes, height, width, reverse} : Lines{planes * height, width, 1, reverse};
  const T* const from = input.data();
  T* const to = output.data();
  return ScanLines<float>(
      cuda, lines, [=] POLYOP_DEVICE(int64_t index, int64_t) { return ToFloat(from[index]); },
      [] POLYOP_DEVICE(float a, float b) { return a != a || a > b ? a : b; },  // NaN is the greatest
      [=] POLYOP_DEVICE(int64_t index, float best) { to[index] = FromFloat<T>(best); });
}

POLYOP_CUDA_KERNELS(CornerPool, CornerPoolCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
