#include "kernels/cuda/cuda.h"
#include "ops/svd/svd_of_matrix.h"

namespace polyop {
namespace {

// Sets the parts that belong to failed matrices to NaN.
template <class T>
Status SetFailed(const CudaContext& cuda, const bool* failed, int64_t matrices, const Tensor<T, kAnyRank>& parts) {
  if (matrices == 0) return Status::Ok();
  const Divider by_size(std::max<int64_t>(parts.size() / matrices, 1));
  T* const to = parts.data();
  return ForEach(cuda, parts.size(), [=] POLYOP_DEVICE(int64_t i) {
    if (failed[by_size.Quotient(i)]) to[i] = static_cast<T>(NAN);
  });
}

// Each thread decomposes one matrix in scratch memory. It does not fill the result of a failed one: ptxas 13.0 keeps
// the indices of such loops in uniform registers, which the threads of a warp share although they are at other steps.
template <class T>
Status SvdCuda(const Svd& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> u,
               Tensor<T, kAnyRank> s, Tensor<T, kAnyRank> vh) {
  const MatricesToDecompose<T> matrices(op, a, u, s, vh);
  const int64_t size = matrices.WorkSize();
  double* const work = cuda.Allocate<double>(matrices.count * size);
  bool* const failed = cuda.Allocate<bool>(matrices.count);
  POLYOP_RETURN_IF_ERROR(ForEach(
      cuda, matrices.count, [=] POLYOP_DEVICE(int64_t n) { failed[n] = !matrices.TryDecompose(n, work + n * size); }));
  POLYOP_RETURN_IF_ERROR(SetFailed(cuda, failed, matrices.count, s));
  if (!matrices.with_vectors) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(SetFailed(cuda, failed, matrices.count, u));
  return SetFailed(cuda, failed, matrices.count, vh);
}

POLYOP_CUDA_KERNELS(Svd, SvdCuda, float, double);

}  // namespace
}  // namespace polyop
