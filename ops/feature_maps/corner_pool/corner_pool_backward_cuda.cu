// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/line_scan.h"
#include "ops/feature_maps/corner_pool/corner_pool_backward.h"

namespace polyop {
namespace {

struct RunningCorner {
  float value;
  int64_t at;  // position along the scan
};

struct CornerRun {
  int64_t at;  // the maximum of the run's pixels
  float sum;
  bool whole;  // the sum includes the maximum, the last pixel of the run in this direction
};

// The pixels with the same maximum are consecutive, and the maximum is the first of them. So the sum of a run's
// gradients is a scan in the opposite direction.
template <class T>
Status CornerPoolBackwardCuda(const CornerPoolBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                              Tensor<const T, 4> input, Tensor<T, 4> grad_input) {
  const int64_t planes = input.dim(0) * input.dim(1), height = input.dim(2), width = input.dim(3);
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool reverse = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  Lines lines = vertical ? Lines{planes, height, width, reverse} : Lines{planes * height, width, 1, reverse};
  int64_t* const best = cuda.Allocate<int64_t>(input.size());
  const T *const from = input.data(), *const grad = grad_output.data();
  T* const to = grad_input.data();
  POLYOP_RETURN_IF_ERROR(ScanLines<RunningCorner>(
      cuda, lines, [=] POLYOP_DEVICE(int64_t index, int64_t k) { return RunningCorner{ToFloat(from[index]), k}; },
      [] POLYOP_DEVICE(const RunningCorner& a, const RunningCorner& b) {
        return b.value != b.value || b.value >= a.value ? b : a;  // false if only a is NaN
      },
      [=] POLYOP_DEVICE(int64_t index, const RunningCorner& corner) { best[index] = corner.at; }));
  const int64_t last = lines.length - 1;
  lines.backwards = !reverse;
  return ScanLines<CornerRun>(
      cuda, lines,
      [=] POLYOP_DEVICE(int64_t index, int64_t k) {
        return CornerRun{best[index], ToFloat(grad[index]), best[index] == last - k};
      },
      [] POLYOP_DEVICE(const CornerRun& a, const CornerRun& b) {
        return CornerRun{b.at, a.at == b.at ? a.sum + b.sum : b.sum, b.whole};
      },
      [=] POLYOP_DEVICE(int64_t index, const CornerRun& run) { to[index] = FromFloat<T>(run.whole ? run.sum : 0); });
}

POLYOP_CUDA_KERNELS(CornerPoolBackward, CornerPoolBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
