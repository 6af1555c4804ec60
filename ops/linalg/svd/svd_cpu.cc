// SPDX-License-Identifier: Apache-2.0
// All ways rotate the rows of a matrix until they are orthogonal (one-sided Jacobi). Of small matrices, each lane of a
// vector has one, and an item of the parallel loop is such a group (svd_lanes-inl.h). A larger one is a separate item,
// with a row in vectors. From blocked::kMinSize rows on, most operations are products of matrices: the eigenvectors of
// the products of rows make the rows nearly orthogonal first. A single such matrix uses all threads in its products.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/svd/svd_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/blocked_eigen-inl.h"
#include "ops/linalg/svd/svd_lanes-inl.h"
#include "ops/linalg/svd/svd_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Decomposes single matrices in vectors of the instruction set.
template <class T>
struct MatricesInVectors : MatricesToDecompose<T> {
  using MatricesToDecompose<T>::MatricesToDecompose;
  using Parts = typename MatricesToDecompose<T>::Parts;
  using VectorOps = blocked::VectorOps;

  void Decompose(int64_t n, double* work) const {
    MatricesToDecompose<T>::template Decompose<blocked::VectorOps>(n, work);
  }

  // Decompose by blocks. Requires: `work` has space for DoublesByBlocks() numbers.
  void DecomposeByBlocks(int64_t n, const Context* context, double* work) const {
    const int64_t pairs = this->shorter, length = this->longer;
    const Parts parts = this->PartsOf(work);
    double *const part = work + this->WorkSize(), *const memory = part + pairs * pairs;
    const blocked::Products products(context, memory);
    const double scale = this->Read(n, parts.given);
    if (!(scale > 0)) return Decompose(n, work);
    if (DecomposeOfLowRank(products, parts, part)) return this->Store(n, scale, parts);
    if (!this->with_vectors && StoreRootsOfEigenvalues(n, context, scale, parts, memory)) return;
    ProductsOfRows(products, parts.given, pairs, parts.gram);
    if (!blocked::SymmetricEigen(context, parts.gram, parts.gram, pairs, parts.lengths, parts.rotations, memory)) {
      return Decompose(n, work);
    }
    Multiply(products, parts.rotations, pairs, parts.given, length, parts.rotated);
    if (!RotateShortVectors(products, context, parts, part)) return Decompose(n, work);
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < kMaxSweepsOfSvd; ++sweep) {
      ProductsOfRows(products, parts.rotated, pairs, parts.gram);
      rotated = OrthogonalizePairs(parts);
    }
    this->Store(n, scale, parts);
  }

  int64_t DoublesByBlocks() const {
    return this->WorkSize() + this->shorter * this->shorter +
           std::max(blocked::EigenDoubles(this->shorter, true), blocked::Products::Doubles(this->longer));
  }

 private:
  // Computes the upper triangle of the products of the first `count` vectors, and some elements below it; the others
  // become 0.
  void ProductsOfRows(const blocked::Products& products, const double* vectors, int64_t count, double* gram) const {
    const int64_t length = this->longer;
    std::fill_n(gram, count * count, 0.0);
    products.SubtractTriangle(false, count, length, {vectors, length, 1}, {vectors, 1, length}, gram, count);
    for (int64_t i = 0; i < count * count; ++i) gram[i] = -gram[i];
  }

  // Computes the product of a matrix of `count` rows, which is square by default, and the rows of another.
  static void Multiply(const blocked::Products& products, const double* matrix, int64_t count, const double* rows,
                       int64_t length, double* to, int64_t depth = -1) {
    depth = depth < 0 ? count : depth;
    std::fill_n(to, count * length, 0.0);
    products.Subtract(count, length, depth, {matrix, depth, 1}, {rows, length, 1}, to, length);
    for (int64_t i = 0; i < count * length; ++i) to[i] = -to[i];
  }

  // Decomposes a matrix that is one of low rank but for rounding errors of its elements: as the product of few rows,
  // an orthonormal basis of the sums of its rows by random factors, and the coefficients of its rows (Halko, Martinsson
  // and Tropp, Finding structure with randomness, algorithm 4.1). Returns false, after few operations, if it is not.
  // `part` has space for pairs^2 numbers.
  bool DecomposeOfLowRank(const blocked::Products& products, const Parts& parts, double* part) const {
    const int64_t pairs = this->shorter, length = this->longer, rank = std::max<int64_t>(16, pairs / 16);
    if (3 * rank > pairs || rank * length > pairs * pairs) return false;
    double *const basis = part, *const coefficients = parts.gram, *const factors = parts.rotations;
    std::minstd_rand random;
    for (int64_t i = 0; i < rank * pairs; ++i) factors[i] = static_cast<double>(random()) * 0x1p-30 - 1;
    double* const sums = parts.rotated;
    Multiply(products, factors, rank, parts.given, length, sums, pairs);
    linalg::FactorQr(sums, rank, length, parts.taus);
    for (int64_t k = 0; k < rank; ++k) linalg::ColumnOfQ(sums, rank, length, parts.taus, k, basis + k * length);
    std::fill_n(coefficients, pairs * rank, 0.0);
    products.Subtract(pairs, rank, length, {parts.given, length, 1}, {basis, 1, length}, coefficients, rank);
    for (int64_t i = 0; i < pairs * rank; ++i) coefficients[i] = -coefficients[i];
    if (!RestIsNoise(products, parts, basis, coefficients, rank)) return false;

    double *const vectors = factors, *const turns = coefficients;  // the coefficients' columns become orthogonal
    for (int64_t k = 0; k < rank; ++k) {
      for (int64_t i = 0; i < pairs; ++i) vectors[k * pairs + i] = coefficients[i * rank + k];
    }
    std::fill_n(turns, rank * rank, 0.0);
    for (int64_t k = 0; k < rank; ++k) turns[k * (rank + 1)] = 1;
    Orthogonalize<VectorOps>(vectors, rank, pairs, turns, this->Tolerance(), parts.lengths, parts.order);
    std::fill_n(parts.rotated, pairs * length, 0.0);
    Multiply(products, turns, rank, basis, length, parts.rotated);
    CompleteLowRank(parts, rank);
    return true;
  }

  // Returns whether the matrix differs from the product of the coefficients and the basis by not more than rounding
  // errors, in each row and each column. Overwrites parts.rotated.
  bool RestIsNoise(const blocked::Products& products, const Parts& parts, const double* basis,
                   const double* coefficients, int64_t rank) const {
    constexpr double kEpsilon = std::numeric_limits<T>::epsilon() * (std::is_same_v<T, float> ? 2 : 16);
    constexpr int64_t kChunk = 16;
    const int64_t pairs = this->shorter, length = this->longer;
    double *const rest = parts.rotated, *const of_columns = parts.column;
    std::fill_n(of_columns, length, 0.0);
    for (int64_t first = 0; first < pairs; first += kChunk) {
      const int64_t count = std::min(kChunk, pairs - first);
      std::copy_n(parts.given + first * length, count * length, rest);
      products.Subtract(count, length, rank, {coefficients + first * rank, rank, 1}, {basis, length, 1}, rest, length);
      for (int64_t i = 0; i < count; ++i) {
        const double *const row = parts.given + (first + i) * length, *const left = rest + i * length;
        if (VectorOps::Dot(left, left, length) > kEpsilon * kEpsilon * VectorOps::Dot(row, row, length)) return false;
        for (int64_t j = 0; j < length; ++j) {
          of_columns[j] += left[j] * left[j] - kEpsilon * kEpsilon * row[j] * row[j];
        }
      }
    }
    return std::none_of(of_columns, of_columns + length, [](double excess) { return excess > 0; });
  }

  // Multiplies the first `rank` vectors of parts.rotated, of unit length, by the lengths of those of parts.rotations,
  // which become unit vectors. The other vectors of parts.rotations become orthonormal to them.
  void CompleteLowRank(const Parts& parts, int64_t rank) const {
    constexpr double kDisappears = 0x1p-80;
    const int64_t pairs = this->shorter, length = this->longer;
    double longest = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < rank; ++k) {
      parts.lengths[k] = linalg::LengthOf(parts.rotations + k * pairs, pairs);
      longest = std::max(longest, parts.lengths[k]);
    }
    for (int64_t k = 0; k < rank; ++k) {
      const double size = parts.lengths[k] > kDisappears * longest ? parts.lengths[k] : 0;
      double *const from = parts.rotated + k * length, *const to = parts.rotated + count * length;
      for (int64_t i = 0; i < length; ++i) {
        const double value = from[i];
        from[i] = 0;
        to[i] = value * size;
      }
      if (size == 0) continue;
      for (int64_t i = 0; i < pairs; ++i) {
        parts.rotations[count * pairs + i] = parts.rotations[k * pairs + i] / size;
      }
      ++count;
    }
    if (!this->with_vectors) return;
    std::copy_n(parts.rotations, count * pairs, parts.given);
    linalg::FactorQr(parts.given, count, pairs, parts.taus);
    for (int64_t k = count; k < pairs; ++k) {
      linalg::ColumnOfQ(parts.given, count, pairs, parts.taus, k, parts.rotations + k * pairs);
    }
  }

  // Makes vectors that are much shorter than others nearly orthogonal. Those in `rotated` are in ascending order of the
  // eigenvalues of all products, whose errors are relative to the longest vector: among the short ones they are noise.
  // The eigenvectors of the products of only the short vectors have errors relative to the longest of these, and so on.
  // `part` has space for pairs^2 numbers. Returns false if an eigenvalue does not converge.
  bool RotateShortVectors(const blocked::Products& products, const Context* context, const Parts& parts,
                          double* part) const {
    constexpr double kMinLongest = 0x1p-600;  // of squares
    const int64_t pairs = this->shorter, length = this->longer;
    for (int64_t count = pairs; count > 1;) {
      double* const squares = parts.lengths;
      for (int64_t k = 0; k < pairs; ++k) {
        squares[k] = VectorOps::Dot(parts.rotated + k * length, parts.rotated + k * length, length);
      }
      const double longest = *std::max_element(squares, squares + count);
      // Vectors of many lengths are separated in long steps, each of which takes an eigendecomposition. If none are
      // that short, it takes few operations to separate some that are less short.
      int64_t next = 0;
      for (const double ratio : {0x1p-24, 0x1p-12}) {
        if (next > 0) break;
        next = count;
        while (next > 0 && !(squares[next - 1] < ratio * longest)) --next;
      }
      if (next == count || next == 0 || longest < kMinLongest) break;
      count = next;
      MakeOrthogonalToLonger(products, parts, count);
      ProductsOfRows(products, parts.rotated, count, parts.gram);
      if (!blocked::SymmetricEigen(context, parts.gram, parts.gram, count, squares, part, products.memory())) {
        return false;
      }
      Multiply(products, part, count, parts.rotated, length, parts.given);
      std::copy_n(parts.given, count * length, parts.rotated);
      if (!this->with_vectors) continue;
      Multiply(products, part, count, parts.rotations, pairs, parts.given);
      std::copy_n(parts.given, count * pairs, parts.rotations);
    }
    return true;
  }

  // Makes the first `count` vectors orthogonal to the longer ones. parts.lengths has the squares of all. A vector that
  // nearly disappears twice is a sum of the longer ones, and becomes 0.
  void MakeOrthogonalToLonger(const blocked::Products& products, const Parts& parts, int64_t count) const {
    constexpr double kDisappears = 0x1p-40;  // of squares
    const int64_t length = this->longer;
    for (bool again : {true, false}) {
      bool any = false;
      RotateAgainstLonger(products, parts, count);
      for (int64_t k = 0; k < count; ++k) {
        double* const vector = parts.rotated + k * length;
        const double square = VectorOps::Dot(vector, vector, length);
        const bool disappears = square < kDisappears * parts.lengths[k];
        any |= disappears;
        if (disappears && !again) std::fill_n(vector, length, 0.0);
        parts.lengths[k] = square;
      }
      if (!any) return;
    }
  }

  // Rotates the first `count` vectors and the longer ones, whose products are nearly 0, by angles whose squares are
  // negligible. Overwrites parts.gram.
  void RotateAgainstLonger(const blocked::Products& products, const Parts& parts, int64_t count) const {
    const int64_t pairs = this->shorter, length = this->longer, others = pairs - count;
    double* const angles = parts.gram;
    std::fill_n(angles, count * others, 0.0);
    products.Subtract(count, others, length, {parts.rotated, length, 1}, {parts.rotated + count * length, 1, length},
                      angles, others);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < others; ++j) angles[i * others + j] /= -parts.lengths[count + j];
    }
    const auto rotate = [&](double* rows, int64_t size) {
      double* const after = rows + count * size;
      products.Subtract(count, size, others, {angles, others, 1}, {after, size, 1}, rows, size);
      for (int64_t i = 0; i < count * others; ++i) angles[i] = -angles[i];
      products.Subtract(others, size, count, {angles, 1, others}, {rows, size, 1}, after, size);
      for (int64_t i = 0; i < count * others; ++i) angles[i] = -angles[i];
    };
    rotate(parts.rotated, length);
    if (this->with_vectors) rotate(parts.rotations, pairs);
  }

  // Singular values are the roots of the eigenvalues of the vectors' products, which are exact enough for float unless
  // the smallest one is tiny. Returns false if it is.
  bool StoreRootsOfEigenvalues(int64_t n, const Context* context, double scale, const Parts& parts,
                               double* memory) const {
    constexpr double kMinRatio = 0x1p-26;  // the error of a root is at most 2e-7 of it
    const int64_t pairs = this->shorter;
    double* const values = parts.lengths;
    if (!std::is_same_v<T, float>) return false;
    ProductsOfRows(blocked::Products(context, memory), parts.given, pairs, parts.gram);
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
      Orthogonalize<VectorOps>(parts.rotated, pairs, this->longer, parts.rotations, tolerance, squares, roots);
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
