// Decomposes small symmetric matrices in parallel, one in each lane of a vector. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_EIGH_EIGH_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_EIGH_EIGH_LANES_INL_H_
#undef POLYOP_OPS_EIGH_EIGH_LANES_INL_H_
#else
#define POLYOP_OPS_EIGH_EIGH_LANES_INL_H_
#endif

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "families/linalg/jacobi_lanes-inl.h"
#include "families/linalg/lanes-inl.h"
#include "ops/eigh/eigh_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Jacobi's algorithm: rotates pairs of rows and columns until the elements outside of the diagonal are at most
/// `tolerance` times the largest element. The rows of `vectors`, which may be null, become the eigenvectors. Returns
/// the lanes that converged.
inline RealMask DiagonalizeInLanes(const LaneMatrices& a, const LaneMatrices* vectors, double tolerance) {
  constexpr int kMaxSweeps = 20;  // usually 5 to 9 suffice
  const RealTag d;
  const int64_t size = a.rows;
  auto largest = hn::Zero(d);
  for (int64_t e = 0; e < size * size; ++e) {
    largest = hn::Max(largest, hn::Abs(LoadReals(a.elements + e * RealLanes())));
  }
  const auto limit = hn::Mul(largest, RealsOf(tolerance));
  for (int64_t i = 0; vectors != nullptr && i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) vectors->Set(i, j, RealsOf(i == j ? 1 : 0));
  }
  for (int sweep = 0;; ++sweep) {
    auto outside = hn::Zero(d);
    for (int64_t p = 0; p < size; ++p) {
      for (int64_t q = p + 1; q < size; ++q) outside = hn::Max(outside, hn::Abs(a.Get(p, q)));
    }
    const auto converged = hn::Le(outside, limit);
    if (hn::AllTrue(d, converged) || sweep == kMaxSweeps) return converged;
    for (int64_t p = 0; p < size; ++p) {
      for (int64_t q = p + 1; q < size; ++q) {
        const auto product = a.Get(p, q);
        const auto rotated = hn::Gt(hn::Abs(product), limit);
        if (hn::AllFalse(d, rotated)) continue;
        const auto pp = a.Get(p, p), qq = a.Get(q, q);
        const LaneRotation rotation = FindRotation(pp, qq, product, rotated);
        const auto change = hn::Mul(rotation.tangent, product);
        a.Set(p, p, hn::Sub(pp, change));
        a.Set(q, q, hn::Add(qq, change));
        const auto rest = hn::IfThenZeroElse(rotated, product);
        a.Set(p, q, rest);
        a.Set(q, p, rest);
        for (int64_t k = 0; k < size; ++k) {
          if (k == p || k == q) continue;
          auto x = a.Get(p, k), y = a.Get(q, k);
          rotation.Apply(x, y);
          a.Set(p, k, x);
          a.Set(k, p, x);
          a.Set(q, k, y);
          a.Set(k, q, y);
        }
        if (vectors != nullptr) RotateRows(*vectors, p, q, rotation);
      }
    }
  }
}

/// The number of doubles that EighGroup's `memory` must have space for.
template <class T>
int64_t EighGroupDoubles(const SymmetricMatrices<T>& matrices) {
  return 2 * LaneMatrices::Doubles(matrices.size, matrices.size);
}

/// Decomposes `count` matrices, except for those with unusual values: their done[] is 0.
template <class T>
void EighGroup(const SymmetricMatrices<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  const int64_t size = matrices.size, lanes = RealLanes();
  const LaneMatrices a{memory, size, size}, vectors{memory + LaneMatrices::Doubles(size, size), size, size};
  a.Read(matrices.from + first * size * size, count);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      const auto read = matrices.upper ? a.Get(j, i) : a.Get(i, j);
      a.Set(i, j, read);
      a.Set(j, i, read);
    }
  }
  const auto usual = MakeUsual(a);
  const double tolerance = std::is_same_v<T, float> ? 0x1p-42 : 0x1p-56;
  const auto converged = DiagonalizeInLanes(a, matrices.with_vectors ? &vectors : nullptr, tolerance);
  StoreLanes(hn::And(usual, converged), done);
  for (int64_t m = 0; m < count; ++m) {
    if (done[m] == 0) continue;
    const int64_t n = first + m;
    std::array<std::pair<double, int64_t>, kMaxSizeInLanes> order;
    for (int64_t k = 0; k < size; ++k) order[static_cast<size_t>(k)] = {a.At(k, k)[m], k};
    std::sort(order.begin(), order.begin() + size);
    for (int64_t k = 0; k < size; ++k) {
      const auto [value, row] = order[static_cast<size_t>(k)];
      matrices.values[n * size + k] = static_cast<T>(value);
      if (!matrices.with_vectors) continue;
      std::array<double, kMaxSizeInLanes> vector{};
      for (int64_t i = 0; i < size; ++i)
        vector[static_cast<size_t>(i)] = vectors.elements[(row * size + i) * lanes + m];
      const double sign = linalg::SignOf(vector.data(), size);
      for (int64_t i = 0; i < size; ++i) {
        matrices.basis[(n * size + i) * size + k] = static_cast<T>(sign * vector[static_cast<size_t>(i)]);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
