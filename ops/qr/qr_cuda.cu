#include "kernels/cuda/cuda.h"
#include "ops/qr/qr_of_matrix.h"

namespace polyop {
namespace {

// Each thread factors one matrix in scratch memory.
template <class T>
Status QrCuda(const Qr&, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> q,
              Tensor<T, kAnyRank> r) {
  const OrthogonalFactors<T> matrices(a, q, r);
  const int64_t size = matrices.WorkSize();
  double* const work = cuda.Allocate<double>(matrices.count * size);
  return ForEach(cuda, matrices.count, [=] POLYOP_DEVICE(int64_t n) { matrices.Decompose(n, work + n * size); });
}

POLYOP_CUDA_KERNELS(Qr, QrCuda, float, double);

}  // namespace
}  // namespace polyop
