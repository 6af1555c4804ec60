#include <cmath>

#include "kernels/cuda/cuda.h"
#include "ops/softmax/softmax.h"

namespace polyop {
namespace {

// Each thread normalizes one line.
template <class T>
Status SoftmaxCuda(const Softmax& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x, Tensor<T, kAnyRank> y) {
  const SoftmaxLines lines(op, x.shape());
  const int64_t length = lines.length, inner = lines.inner;
  const bool log = op.log != 0;
  const T* const source = x.data();
  T* const target = y.data();
  return ForEach(cuda, lines.outer * inner, [=] POLYOP_DEVICE(int64_t n) {
    const int64_t first = n / inner * length * inner + n % inner;
    const T* const from = source + first;
    T* const to = target + first;
    float max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < length; ++i) {
      const float v = ToFloat(from[i * inner]);
      if (v > max || v != v) max = v;
    }
    for (int64_t i = 0; i < length; ++i) sum += std::exp(ToFloat(from[i * inner]) - max);
    const float scale = log ? std::log(sum) : 1 / sum;
    for (int64_t i = 0; i < length; ++i) {
      const float difference = ToFloat(from[i * inner]) - max;
      to[i * inner] = FromFloat<T>(log ? difference - scale : std::exp(difference) * scale);
    }
  });
}

POLYOP_CUDA_KERNELS(Softmax, SoftmaxCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
