#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/svd/svd_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/linalg/blocked-inl.h"
#include "families/linalg/blocked_eigen-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/svd/svd_lanes-inl.h"
#include "ops/svd/svd_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Decomposes single matrices in vectors of the instruction set.
template <class T>
struct MatricesInVectors : MatricesToDecompose<T> {
  using MatricesToDecompose<T>::MatricesToDecompose;
  using Parts = typename MatricesToDecompose<T>::Parts;

  void Decompose(int64_t n, double* work) const {
    MatricesToDecompose<T>::template Decompose<blocked::VectorOps>(n, work);
  }

  // Decompose by blocks. Requires: `work` has space for DoublesByBlocks() numbers.
  void DecomposeByBlocks(int64_t n, const Context* context, double* work) const {
    const int64_t pairs = this->shorter, length = this->longer;
    const Parts parts = this->PartsOf(work);
    double* const memory = work + this->WorkSize();
    const blocked::Products products(context, memory);
    const double scale = this->Read(n, parts.given);
    if (!(scale > 0)) return Decompose(n, work);
    if (!this->with_vectors && StoreRootsOfEigenvalues(n, context, scale, parts, memory)) return;
    ProductsOfRows(products, parts.given, parts.gram);
    if (!blocked::SymmetricEigen(context, parts.gram, parts.gram, pairs, parts.lengths, parts.rotations, memory)) {
      return Decompose(n, work);
    }
    std::fill_n(parts.rotated, pairs * length, 0.0);
    products.Subtract(pairs, length, pairs, {parts.rotations, pairs, 1}, {parts.given, length, 1}, parts.rotated,
                      length);
    for (int64_t i = 0; i < pairs * length; ++i) parts.rotated[i] = -parts.rotated[i];
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < kMaxSweepsOfSvd; ++sweep) {
      ProductsOfRows(products, parts.rotated, parts.gram);
      rotated = OrthogonalizePairs(parts);
    }
    this->Store(n, scale, parts);
  }

  int64_t DoublesByBlocks() const {
    return this->WorkSize() +
           std::max(blocked::EigenDoubles(this->shorter, true), blocked::Products::Doubles(this->longer));
  }

 private:
  // Computes the upper triangle of the products of all vectors, and some elements below it; the others become 0.
  void ProductsOfRows(const blocked::Products& products, const double* vectors, double* gram) const {
    const int64_t pairs = this->shorter, length = this->longer;
    std::fill_n(gram, pairs * pairs, 0.0);
    products.SubtractTriangle(false, pairs, length, {vectors, length, 1}, {vectors, 1, length}, gram, pairs);
    for (int64_t i = 0; i < pairs * pairs; ++i) gram[i] = -gram[i];
  }

  // Singular values are the roots of the eigenvalues of the vectors' products, which are exact enough for float unless
  // the smallest one is tiny. Returns false if it is.
  bool StoreRootsOfEigenvalues(int64_t n, const Context* context, double scale, const Parts& parts,
                               double* memory) const {
    constexpr double kMinRatio = 0x1p-26;  // the error of a root is at most 2e-7 of it
    const int64_t pairs = this->shorter;
    double* const values = parts.lengths;
    if (!std::is_same_v<T, float>) return false;
    ProductsOfRows(blocked::Products(context, memory), parts.given, parts.gram);
    if (!blocked::SymmetricEigen(context, parts.gram, parts.gram, pairs, values, nullptr, memory)) return false;
    if (!(values[0] > kMinRatio * values[pairs - 1])) return false;
    for (int64_t k = 0; k < pairs; ++k) {
      this->s[n * pairs + k] = static_cast<T>(std::sqrt(values[pairs - 1 - k]) / scale);
    }
    return true;
  }

  // Rotates the pairs that are not orthogonal by their products, parts.gram. Returns whether there may be others.
  bool OrthogonalizePairs(const Parts& parts) const {
    const int64_t pairs = this->shorter;
    const double tolerance = this->Tolerance();
    double *const squares = parts.lengths, *const roots = parts.order;
    for (int64_t k = 0; k < pairs; ++k) {
      squares[k] = parts.gram[k * (pairs + 1)];
      roots[k] = std::sqrt(squares[k]);
    }
    const auto is_pair = [&](int64_t p, int64_t q) {
      return std::fabs(parts.gram[p * pairs + q]) > tolerance * roots[p] * roots[q];
    };
    int64_t rotations = 0;
    for (int64_t p = 0; p < pairs; ++p) {
      for (int64_t q = p + 1; q < pairs; ++q) rotations += is_pair(p, q) ? 1 : 0;
    }
    if (rotations > 2 * pairs) {  // many rotations change the products of other pairs
      Orthogonalize<blocked::VectorOps>(parts.rotated, pairs, this->longer, parts.rotations, tolerance, squares);
      return false;
    }
    for (int64_t p = 0; rotations > 0 && p < pairs; ++p) {
      for (int64_t q = p + 1; q < pairs; ++q) {
        if (!is_pair(p, q)) continue;
        OrthogonalizePair<blocked::VectorOps>(parts.rotated, pairs, this->longer, parts.rotations, tolerance, squares,
                                              p, q);
      }
    }
    return rotations > 0;
  }
};

template <class T>
bool DecomposeMatrices(const Context& context, const MatricesInVectors<T>& matrices) {
  if (matrices.shorter >= blocked::kMinSize) {
    return blocked::ForLargeMatrices(
        context, matrices.count, matrices.DoublesByBlocks(),
        [&](int64_t n, double* work, const Context* threads) { matrices.DecomposeByBlocks(n, threads, work); });
  }
  return DecomposeAll<SymmetricLanes::kGroups>(context, matrices, HasSvdGroups(matrices), SvdGroupDoubles(matrices),
                                               [&](int64_t first, int64_t count, double* memory, double* computed)
                                                   HWY_ATTR { SvdGroup(matrices, first, count, memory, computed); });
}

template <class T>
Status SvdCpu(const Svd& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> u,
              Tensor<T, kAnyRank> s, Tensor<T, kAnyRank> vh) {
  const MatricesInVectors<T> matrices(op, a, u, s, vh);
  if (!DecomposeMatrices(context, matrices)) {
    return Internal("out of memory: matrices of ", matrices.WorkSize(), " elements");
  }
  return op.CheckConverged(a.shape(), s.data(), s.dim(s.rank() - 1));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Svd, SvdCpu, float, double);
}  // namespace polyop
#endif
