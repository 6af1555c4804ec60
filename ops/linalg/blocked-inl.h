// SPDX-License-Identifier: Apache-2.0
// Factorizations of large matrices in double precision by blocks: nearly all operations are those of matrix products.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_LINALG_BLOCKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_BLOCKED_INL_H_
#undef POLYOP_OPS_LINALG_BLOCKED_INL_H_
#else
#define POLYOP_OPS_LINALG_BLOCKED_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/all_finite-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/linalg/elimination.h"
#include "ops/linalg/householder.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {
namespace blocked {

using Tag = hn::ScalableTag<double>;
using Numbers = hn::Vec<Tag>;

/// Smaller matrices are computed without blocks.
constexpr int64_t kMinSize = 48;
/// Columns of a block that is factored without blocks, and rows of a triangle that is solved so.
constexpr int64_t kBase = 16, kPanel = 32;
/// Rows and vectors of a block of sums in registers, and the depth of a product whose factors stay in the caches.
constexpr int kRows = 6, kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr int64_t kDepth = 256;

/// Vectors of as many numbers in memory, which are double or float.
template <class T>
using Stored = hn::Rebind<T, Tag>;

template <class T>
HWY_INLINE Numbers Promote(hn::Vec<Stored<T>> x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return hn::PromoteTo(Tag(), x);
  }
}

template <class T>
HWY_INLINE hn::Vec<Stored<T>> Demote(Numbers x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return hn::DemoteTo(Stored<T>(), x);
  }
}

HWY_INLINE int64_t LanesOf() { return static_cast<int64_t>(hn::Lanes(Tag())); }

/// A matrix whose element (i, j) is at data[i * row + j * column]. Does not own its memory.
struct View {
  const double* data;
  int64_t row, column;

  View At(int64_t i, int64_t j) const { return {data + i * row + j * column, row, column}; }
  double operator()(int64_t i, int64_t j) const { return data[i * row + j * column]; }
};

// The functions of ops/linalg/vectors.h, in vectors of the instruction set.
struct VectorOps {
  static HWY_NOINLINE double Dot(const double* a, const double* b, int64_t count) {
    const Tag d;
    const int64_t lanes = LanesOf();
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
      s1 = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
      s2 = hn::MulAdd(hn::LoadU(d, a + i + 2 * lanes), hn::LoadU(d, b + i + 2 * lanes), s2);
      s3 = hn::MulAdd(hn::LoadU(d, a + i + 3 * lanes), hn::LoadU(d, b + i + 3 * lanes), s3);
    }
    for (; i + lanes <= count; i += lanes) s0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), s0);
    double sum = hn::ReduceSum(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
    for (; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }

  static HWY_NOINLINE void SubtractRow(const double* from, double factor, int64_t count, double* to) {
    const Tag d;
    const int64_t lanes = LanesOf();
    const auto f = hn::Set(d, factor);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      hn::StoreU(hn::NegMulAdd(f, hn::LoadU(d, from + i), hn::LoadU(d, to + i)), d, to + i);
    }
    for (; i < count; ++i) to[i] -= factor * from[i];
  }

  /// Computes to[i] -= x * a[i] + y * b[i].
  static HWY_NOINLINE void SubtractTwoRows(const double* a, double x, const double* b, double y, int64_t count,
                                           double* to) {
    const Tag d;
    const int64_t lanes = LanesOf();
    const auto p = hn::Set(d, x), q = hn::Set(d, y);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const auto first = hn::NegMulAdd(p, hn::LoadU(d, a + i), hn::LoadU(d, to + i));
      hn::StoreU(hn::NegMulAdd(q, hn::LoadU(d, b + i), first), d, to + i);
    }
    for (; i < count; ++i) to[i] -= x * a[i] + y * b[i];
  }

  static HWY_NOINLINE void Rotate(double* HWY_RESTRICT a, double* HWY_RESTRICT b, int64_t count, double c, double s) {
    const Tag d;
    const int64_t lanes = LanesOf();
    const auto cosine = hn::Set(d, c), sine = hn::Set(d, s);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const auto x = hn::LoadU(d, a + i), y = hn::LoadU(d, b + i);
      hn::StoreU(hn::NegMulAdd(sine, y, hn::Mul(cosine, x)), d, a + i);
      hn::StoreU(hn::MulAdd(sine, x, hn::Mul(cosine, y)), d, b + i);
    }
    for (; i < count; ++i) {
      const double x = a[i], y = b[i];
      a[i] = c * x - s * y;
      b[i] = s * x + c * y;
    }
  }
};

/// Converts numbers.
template <class T>
HWY_NOINLINE void ToDoubles(const T* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i]);
}
template <class T>
HWY_NOINLINE void FromDoubles(const double* from, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
}

/// Copies the elements of a matrix by rows, as a matrix by columns.
template <class From, class To>
HWY_NOINLINE void Transpose(const From* from, int64_t rows, int64_t columns, To* to) {
  constexpr int64_t kTile = 8;
  for (int64_t i = 0; i < rows; i += kTile) {
    for (int64_t j = 0; j < columns; j += kTile) {
      const int64_t last = std::min(i + kTile, rows);
      for (int64_t c = j; c < std::min(j + kTile, columns); ++c) {
        for (int64_t r = i; r < last; ++r) to[c * rows + r] = static_cast<To>(from[r * columns + c]);
      }
    }
  }
}

/// Calls compute(n, memory, context) for each of `count` matrices, with `doubles` numbers of memory: `context` is the
/// given one for a single matrix, whose products then use all threads, and null if the threads compute several ones.
/// Returns false if there is no memory.
template <class Compute>
bool ForLargeMatrices(const Context& context, int64_t count, int64_t doubles, const Compute& compute) {
  return context.ParallelForWithScratch<double>(count, 1, doubles, [&](double* work, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) compute(n, work, count == 1 ? &context : nullptr);
  });
}

/// Subtracts products of matrices, on the threads of a context if there is one.
class Products {
 public:
  /// Returns how many numbers of memory products with at most `columns` columns need.
  static int64_t Doubles(int64_t columns) {
    const int64_t panel = kVectors * LanesOf();
    return (columns + panel - 1) / panel * panel * kDepth;
  }

  Products(const Context* context, double* packed) : context_(context), packed_(packed) {}

  /// The memory, which products overwrite.
  double* memory() const { return packed_; }

  /// Calls compute(products, first, count) for ranges of columns, on the threads, for which the products of a range
  /// have separate memory. `nanoseconds` is the time of a column. The ranges take turns from both ends, so that
  /// threads which compute ranges that follow each other take equal time if later columns need less.
  template <class Compute>
  void ForColumns(int64_t columns, double nanoseconds, const Compute& compute) const {
    const int64_t panel = kVectors * LanesOf(), range = (64 + panel - 1) / panel * panel;
    const int64_t ranges = (columns + range - 1) / range, grain = GrainFor(nanoseconds * static_cast<double>(range));
    if (context_ == nullptr || Context::NumTasks(ranges, grain) <= 1) return compute(*this, 0, columns);
    context_->ParallelFor(ranges, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t first = FromBothEnds(n, ranges) * range;
        compute(Products(nullptr, packed_ + Doubles(first)), first, std::min(range, columns - first));
      }
    });
  }

  /// Calls compute(begin, end) for ranges of `count` tasks of that many nanoseconds, on the threads, which share the
  /// memory.
  template <class Compute>
  void ForRange(int64_t count, double nanoseconds, const Compute& compute) const {
    if (context_ == nullptr) return compute(0, count);
    context_->ParallelFor(count, GrainFor(nanoseconds), compute);
  }

  static constexpr int64_t kMaxParts = 4;

  /// Calls compute(products, first, count) for at most kMaxParts ranges of rows, on the threads, for which the products
  /// of a range have memory for products with `columns` columns. `nanoseconds` is the time of a row.
  template <class Compute>
  void ForRows(int64_t rows, int64_t columns, double nanoseconds, const Compute& compute) const {
    const int64_t grain = std::max(GrainFor(nanoseconds), (rows + kMaxParts - 1) / kMaxParts);
    if (context_ == nullptr || Context::NumTasks(rows, grain) <= 1) return compute(*this, 0, rows);
    context_->ParallelFor(rows, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
      compute(Products(nullptr, packed_ + task * Doubles(columns)), begin, end - begin);
    });
  }

  /// Computes c -= a b, of m x k and k x n elements; the rows of c are `stride` elements apart.
  void Subtract(int64_t m, int64_t n, int64_t k, const View& a, const View& b, double* c, int64_t stride) const {
    if (m <= 0 || n <= 0) return;
    if (context_ != nullptr && n >= std::max<int64_t>(m, 128)) {  // the threads also pack
      return ForColumns(n, 0.1 * static_cast<double>(m) * static_cast<double>(k),
                        [&](const Products& own, int64_t first, int64_t count) {
                          Products(nullptr, own.packed_).Subtract(m, count, k, a, b.At(0, first), c + first, stride);
                        });
    }
    for (int64_t first = 0; first < k; first += kDepth) {
      const int64_t depth = std::min(kDepth, k - first);
      Pack(b.At(first, 0), depth, n);
      const View block = a.At(0, first);
      const int64_t groups = (m + kRows - 1) / kRows;
      const auto rows = [&](int64_t begin, int64_t end) HWY_ATTR {
        SubtractRows(block, begin * kRows, std::min(end * kRows, m), 0, n, depth, c, stride);
      };
      if (context_ == nullptr) {
        rows(0, groups);
      } else {
        const double nanoseconds = 0.1 * static_cast<double>(kRows * depth) * static_cast<double>(n);
        context_->ParallelFor(groups, std::max<int64_t>(GrainFor(nanoseconds), 8), rows);
      }
    }
  }

  /// Computes c -= a b for the elements of a square matrix on and below its diagonal if `lower`, otherwise on and above
  /// it, and for some on the other side.
  template <class T>
  void SubtractTriangle(bool lower, int64_t size, int64_t k, const View& a, const View& b, T* c, int64_t stride) const {
    const int64_t panel = kVectors * LanesOf(), strips = (size + kStrip - 1) / kStrip;
    for (int64_t first = 0; first < k; first += kDepth) {
      const int64_t depth = std::min(kDepth, k - first);
      Pack(b.At(first, 0), depth, size);
      const View block = a.At(0, first);
      const double nanoseconds = 0.05 * static_cast<double>(kStrip * depth) * static_cast<double>(size);
      ForRange(strips, nanoseconds, [&](int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t n = begin; n < end; ++n) {
          const int64_t i = FromBothEnds(n, strips) * kStrip, last = std::min(i + kStrip, size);
          SubtractRows(block, i, last, lower ? 0 : i / panel * panel, lower ? last : size, depth, c, stride);
        }
      });
    }
  }

 private:
  static constexpr int64_t kStrip = 8 * kRows;  // rows that stay in the cache for all panels

  // The order 0, count - 1, 1, count - 2 and so on.
  static int64_t FromBothEnds(int64_t n, int64_t count) { return n % 2 == 0 ? n / 2 : count - 1 - n / 2; }

  // Packs rows of b, in panels of vectors; columns after the last are 0.
  HWY_NOINLINE void Pack(const View& b, int64_t depth, int64_t n) const {
    const int64_t panel = kVectors * LanesOf();
    double* to = packed_;
    for (int64_t j = 0; j < n; j += panel) {
      const int64_t count = std::min(panel, n - j);
      for (int64_t k = 0; k < depth; ++k, to += panel) {
        const double* const from = b.data + k * b.row + j * b.column;
        if (count == panel && b.column == 1) {
          for (int v = 0; v < kVectors; ++v) {
            hn::StoreU(hn::LoadU(Tag(), from + v * LanesOf()), Tag(), to + v * LanesOf());
          }
          continue;
        }
        for (int64_t c = 0; c < panel; ++c) to[c] = c < count ? from[c * b.column] : 0;
      }
    }
  }

  // Subtracts rows [begin, end) and columns [left, right), of which `left` is the first one of a panel.
  template <class T>
  HWY_NOINLINE void SubtractRows(const View& a, int64_t begin, int64_t end, int64_t left, int64_t right, int64_t depth,
                                 T* c, int64_t stride) const {
    const int64_t panel = kVectors * LanesOf();
    for (int64_t first = begin; first < end; first += kStrip) {
      const int64_t last = std::min(end, first + kStrip);
      for (int64_t j = left; j < right; j += panel) {
        const double* const weights = packed_ + j * depth;
        int64_t i = first;
        for (; i + kRows <= last; i += kRows) {
          Block<kRows>(a.At(i, 0), depth, weights, c + i * stride + j, stride, right - j);
        }
        for (; i < last; ++i) Block<1>(a.At(i, 0), depth, weights, c + i * stride + j, stride, right - j);
      }
    }
  }

  // Subtracts a block of kCount rows and a panel of columns, of which `columns` exist.
  template <int kCount, class T>
  static HWY_INLINE void Block(const View& a, int64_t depth, const double* weights, T* c, int64_t stride,
                               int64_t columns) {
    const Tag d;
    const Stored<T> stored;
    const int64_t lanes = LanesOf();
    Numbers sums[kCount][kVectors];
    for (int r = 0; r < kCount; ++r) {
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
    }
    const double* element = a.data;
    for (int64_t k = 0; k < depth; ++k, element += a.column) {
      Numbers w[kVectors];
      for (int v = 0; v < kVectors; ++v) w[v] = hn::LoadU(d, weights + v * lanes);
      weights += kVectors * lanes;
      for (int r = 0; r < kCount; ++r) {
        const auto x = hn::Set(d, element[r * a.row]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, w[v], sums[r][v]);
      }
    }
    for (int r = 0; r < kCount; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        T* const to = c + r * stride + v * lanes;
        const int64_t left = columns - v * lanes;
        if (left >= lanes) {
          hn::StoreU(Demote<T>(hn::Sub(Promote<T>(hn::LoadU(stored, to)), sums[r][v])), stored, to);
        } else if (left > 0) {
          const auto count = static_cast<size_t>(left);
          hn::StoreN(Demote<T>(hn::Sub(Promote<T>(hn::LoadN(stored, to, count)), sums[r][v])), stored, to, count);
        }
      }
    }
  }

  const Context* context_;
  double* packed_;
};

/// SolveTriangle of kCount vectors of columns, of at most kBase rows. The solution is also kept in one piece, since
/// rows may be so far apart that the cache has no space for all.
template <int kCount>
HWY_INLINE void SolveVectors(const View& t, bool lower, bool unit, int64_t size, double* b, int64_t stride) {
  const Tag d;
  const int64_t lanes = LanesOf(), width = kCount * lanes;
  HWY_ALIGN double solved[kBase * kCount * hn::MaxLanes(d)];
  for (int64_t n = 0; n < size; ++n) {
    const int64_t k = lower ? n : size - 1 - n;
    Numbers x[kCount];
    for (int v = 0; v < kCount; ++v) x[v] = hn::LoadU(d, b + k * stride + v * lanes);
    for (int64_t m = 0; m < n; ++m) {
      const auto factor = hn::Set(d, t(k, lower ? m : size - 1 - m));
      for (int v = 0; v < kCount; ++v) x[v] = hn::NegMulAdd(factor, hn::Load(d, solved + m * width + v * lanes), x[v]);
    }
    for (int v = 0; v < kCount; ++v) {
      if (!unit) x[v] = hn::Div(x[v], hn::Set(d, t(k, k)));
      hn::Store(x[v], d, solved + n * width + v * lanes);
      hn::StoreU(x[v], d, b + k * stride + v * lanes);
    }
  }
}

/// linalg::SolveTriangle, for a triangle of at most kBase rows.
inline HWY_NOINLINE void SolveSmallTriangle(const View& t, bool lower, bool unit, int64_t size, double* b,
                                            int64_t columns, int64_t stride) {
  const int64_t lanes = LanesOf();
  int64_t c = 0;
  for (; c + 8 * lanes <= columns; c += 8 * lanes) SolveVectors<8>(t, lower, unit, size, b + c, stride);
  for (; c + 2 * lanes <= columns; c += 2 * lanes) SolveVectors<2>(t, lower, unit, size, b + c, stride);
  for (; c + lanes <= columns; c += lanes) SolveVectors<1>(t, lower, unit, size, b + c, stride);
  if (c < columns) linalg::SolveTriangle<VectorOps>(t, lower, unit, size, b + c, columns - c, stride);
}

/// Solves T X = B for the `columns` columns of B and overwrites them. `lower` is the triangle of T that is read, in
/// which its diagonal counts as 1 if `unit`.
inline void SolveTriangle(const Products& products, const View& t, bool lower, bool unit, int64_t size, double* b,
                          int64_t columns, int64_t stride) {
  if (size > kBase) {
    const int64_t first = (size / 2 + kBase - 1) / kBase * kBase, rest = size - first;
    double* const second = b + first * stride;
    if (lower) {
      SolveTriangle(products, t, lower, unit, first, b, columns, stride);
      products.Subtract(rest, columns, first, t.At(first, 0), {b, stride, 1}, second, stride);
      SolveTriangle(products, t.At(first, first), lower, unit, rest, second, columns, stride);
    } else {
      SolveTriangle(products, t.At(first, first), lower, unit, rest, second, columns, stride);
      products.Subtract(first, columns, rest, t.At(0, first), {second, stride, 1}, b, stride);
      SolveTriangle(products, t, lower, unit, first, b, columns, stride);
    }
    return;
  }
  SolveSmallTriangle(t, lower, unit, size, b, columns, stride);
}

/// Computes X L^T = B for the `rows` rows of B and overwrites them: L has `size` rows.
inline void SolveFromRight(const Products& products, const double* l, int64_t size, double* b, int64_t rows,
                           int64_t stride) {
  if (size > kBase) {
    const int64_t first = (size / 2 + kBase - 1) / kBase * kBase, rest = size - first;
    SolveFromRight(products, l, first, b, rows, stride);
    products.Subtract(rows, rest, first, {b, stride, 1}, {l + first * stride, 1, stride}, b + first, stride);
    SolveFromRight(products, l + first * stride + first, rest, b + first, rows, stride);
    return;
  }
  // The lanes of vectors are several rows.
  const Tag d;
  const int64_t lanes = LanesOf();
  HWY_ALIGN double x[kBase * hn::MaxLanes(d)];
  double inverses[kBase];
  for (int64_t j = 0; j < size; ++j) inverses[j] = 1 / l[j * stride + j];
  for (int64_t i = 0; i < rows; i += lanes) {
    const int64_t count = std::min(lanes, rows - i);
    for (int64_t m = 0; m < lanes; ++m) {
      for (int64_t j = 0; j < size; ++j) x[j * lanes + m] = b[(i + std::min(m, count - 1)) * stride + j];
    }
    for (int64_t j = 0; j < size; ++j) {
      auto sum = hn::Load(d, x + j * lanes);
      for (int64_t k = 0; k < j; ++k)
        sum = hn::NegMulAdd(hn::Set(d, l[j * stride + k]), hn::Load(d, x + k * lanes), sum);
      hn::Store(hn::Mul(sum, hn::Set(d, inverses[j])), d, x + j * lanes);
    }
    for (int64_t m = 0; m < count; ++m) {
      for (int64_t j = 0; j < size; ++j) b[(i + m) * stride + j] = x[j * lanes + m];
    }
  }
}

/// Returns how many numbers of memory the products of FactorCholesky need.
inline int64_t CholeskyDoubles(int64_t size) {
  return std::max(Products::Doubles(size), Products::kMaxParts * Products::Doubles(size / 4 + kBase));
}

/// linalg::FactorCholesky of the lower triangle of `a`, whose upper triangle is not changed. Returns false if a leading
/// minor is not positive; the results are undefined then.
inline bool FactorCholesky(const Products& products, double* a, int64_t size, int64_t stride) {
  if (size > kBase) {
    const int64_t first = (size / 2 + kBase - 1) / kBase * kBase, rest = size - first;
    double *const below = a + first * stride, *const corner = below + first;
    if (!FactorCholesky(products, a, first, stride)) return false;
    products.ForRows(rest, first / 2, 0.05 * static_cast<double>(first * first),
                     [&](const Products& own, int64_t begin, int64_t count) {
                       SolveFromRight(own, a, first, below + begin * stride, count, stride);
                     });
    products.SubtractTriangle(true, rest, first, {below, stride, 1}, {below, 1, stride}, corner, stride);
    return FactorCholesky(products, corner, rest, stride);
  }
  double inverses[kBase];
  return linalg::FactorCholesky(a, size, stride, inverses) == 0;
}

/// The columns of a matrix that FactorLu factors without blocks.
constexpr int64_t kPanelOfLu = 8;

/// linalg::FactorLu of at most kPanelOfLu columns, in a copy by columns, for which `copy` has space.
inline int32_t FactorLuPanel(double* a, int64_t rows, int64_t columns, int64_t stride, int32_t* pivots, double* copy) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) copy[j * rows + i] = a[i * stride + j];
  }
  int32_t info = 0;
  for (int64_t k = 0; k < std::min(rows, columns); ++k) {
    double* const column = copy + k * rows;
    int64_t best = k;
    double largest = std::fabs(column[k]);
    for (int64_t i = k + 1; i < rows; ++i) {
      if (!(std::fabs(column[i]) > largest)) continue;
      largest = std::fabs(column[i]);
      best = i;
    }
    pivots[k] = static_cast<int32_t>(best + 1);
    if (best != k) linalg::SwapElements(copy + k, copy + best, columns, rows);
    if (column[k] == 0) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < rows; ++i) column[i] /= column[k];
    for (int64_t j = k + 1; j < columns; ++j) {
      VectorOps::SubtractRow(column + k + 1, copy[j * rows + k], rows - k - 1, copy + j * rows + k + 1);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) a[i * stride + j] = copy[j * rows + i];
  }
  return info;
}

/// FactorLu, with memory for a panel or null.
inline int32_t FactorLuRecursively(const Products& products, double* a, int64_t rows, int64_t columns, int64_t stride,
                                   int32_t* pivots, double* copy) {
  const int64_t smaller = std::min(rows, columns);
  if (columns <= kPanelOfLu && copy != nullptr) return FactorLuPanel(a, rows, columns, stride, pivots, copy);
  if (smaller <= kPanelOfLu) return linalg::FactorLu(a, rows, columns, stride, pivots);
  const int64_t first = (smaller / 2 + kPanelOfLu - 1) / kPanelOfLu * kPanelOfLu;
  double *const right = a + first, *const below = a + first * stride, *const corner = below + first;
  const int32_t info = FactorLuRecursively(products, a, rows, first, stride, pivots, copy);
  const double nanoseconds = 0.1 * static_cast<double>(first) * static_cast<double>(rows);
  products.ForColumns(columns - first, nanoseconds, [&](const Products& own, int64_t begin, int64_t count) {
    double* const block = right + begin;
    for (int64_t k = 0; k < first; ++k) {
      const int64_t other = int64_t{pivots[k]} - 1;
      if (other != k) std::swap_ranges(block + k * stride, block + k * stride + count, block + other * stride);
    }
    SolveTriangle(own, {a, stride, 1}, true, true, first, block, count, stride);
    own.Subtract(rows - first, count, first, {below, stride, 1}, {block, stride, 1}, corner + begin, stride);
  });
  const int32_t later =
      FactorLuRecursively(products, corner, rows - first, columns - first, stride, pivots + first, copy);
  for (int64_t k = first; k < smaller; ++k) {
    pivots[k] += static_cast<int32_t>(first);
    const int64_t other = int64_t{pivots[k]} - 1;
    if (other != k) std::swap_ranges(a + k * stride, a + k * stride + first, a + other * stride);
  }
  if (info != 0) return info;
  return later == 0 ? 0 : later + static_cast<int32_t>(first);
}

/// linalg::FactorLu. Requires: all elements are finite.
inline int32_t FactorLu(const Products& products, double* a, int64_t rows, int64_t columns, int64_t stride,
                        int32_t* pivots) {
  const bool has_space = kPanelOfLu * rows <= Products::Doubles(columns);
  return FactorLuRecursively(products, a, rows, columns, stride, pivots, has_space ? products.memory() : nullptr);
}

/// Computes the upper triangle T with which the product of `count` <= kPanel reflections is I - V T V^T. Row k of V^T
/// is reflection k's vector, of `length` elements, which starts with k zeros.
inline void TriangleOfReflections(const double* vectors, const double* taus, int64_t count, int64_t length,
                                  double* triangle) {
  std::fill_n(triangle, count * count, 0.0);
  for (int64_t k = 0; k < count; ++k) {
    double products[kPanel];
    for (int64_t i = 0; i < k; ++i) {
      products[i] = VectorOps::Dot(vectors + i * length + k, vectors + k * length + k, length - k);
    }
    for (int64_t i = 0; i < k; ++i) {
      double sum = 0;
      for (int64_t j = i; j < k; ++j) sum += triangle[i * count + j] * products[j];
      triangle[i * count + k] = -taus[k] * sum;
    }
    triangle[k * count + k] = taus[k];
  }
}

/// Returns how many numbers of memory ApplyPanel and ApplyReflections need, next to those of the products.
inline int64_t ReflectionDoubles(int64_t length, int64_t rows) { return kPanel * (length + 2 * rows + kPanel); }

/// Multiplies rows of `length` elements, `row_stride` elements apart, by the product of `count` <= kPanel reflections,
/// I - V T V^T with the upper triangle T; `transposed`: by its transpose. The vector of reflection k is k zeros, a 1,
/// and then the elements after vectors[k * (stride + 1)].
inline void ApplyPanel(const Products& products, const double* vectors, int64_t stride, const double* taus,
                       int64_t count, int64_t length, bool transposed, double* rows, int64_t row_count,
                       int64_t row_stride, double* memory) {
  double *const vs = memory, *const sums = vs + count * length, *const scaled = sums + row_count * count,
                *const triangle = scaled + row_count * count;
  for (int64_t k = 0; k < count; ++k) {
    double* const v = vs + k * length;
    std::fill_n(v, k, 0.0);
    v[k] = 1;
    std::copy_n(vectors + k * (stride + 1) + 1, length - k - 1, v + k + 1);
  }
  TriangleOfReflections(vs, taus, count, length, triangle);
  const View factor = transposed ? View{triangle, 1, count} : View{triangle, count, 1};
  std::fill_n(sums, row_count * count, 0.0);
  std::fill_n(scaled, row_count * count, 0.0);
  products.Subtract(row_count, count, length, {rows, row_stride, 1}, {vs, 1, length}, sums, count);
  products.Subtract(row_count, count, count, {sums, count, 1}, factor, scaled, count);
  products.Subtract(row_count, length, count, {scaled, count, 1}, {vs, length, 1}, rows, row_stride);
}

/// Reflections I - tau v v^T. The vector of reflection k has `length` elements: zeros, a 1 at `k + shift`, and then
/// those of row k of `vectors`, whose rows are `stride` elements apart.
struct Reflections {
  const double *vectors, *taus;
  int64_t count, length, stride, shift;
};

/// Multiplies rows by the product of the reflections. `unit`: they are rows of the unit matrix.
inline void ApplyReflections(const Products& products, const Reflections& reflections, double* memory, bool unit,
                             double* rows, int64_t row_count) {
  const int64_t length = reflections.length;
  for (int64_t first = (reflections.count - 1) / kPanel * kPanel; first >= 0; first -= kPanel) {
    const int64_t count = std::min(kPanel, reflections.count - first), skipped = first + reflections.shift;
    const int64_t changed = unit ? row_count - skipped : row_count;
    if (changed <= 0) continue;
    ApplyPanel(products, reflections.vectors + first * reflections.stride + skipped, reflections.stride,
               reflections.taus + first, count, length - skipped, true, rows + (row_count - changed) * length + skipped,
               changed, length, memory);
  }
}

/// linalg::FactorQr of columns, of `length` elements, which are stored one after the other. The reflections of several
/// columns are the product I - V T V^T.
class QrFactors {
 public:
  /// Returns how many numbers of memory are needed for `count` columns.
  static int64_t Doubles(int64_t count, int64_t length) {
    return Products::Doubles(std::max(length, count)) + ReflectionDoubles(length, count);
  }

  QrFactors(const Context* context, double* columns, int64_t count, int64_t length, double* taus, double* memory)
      : products_(context, memory),
        columns_(columns),
        count_(count),
        length_(length),
        taus_(taus),
        memory_(memory + Products::Doubles(std::max(length, count))) {}

  void Factor() const {
    const int64_t smaller = std::min(count_, length_);
    for (int64_t first = 0; first < smaller; first += kPanel) {
      const int64_t last = std::min(first + kPanel, smaller);
      Factor(first, last);
      Reflect(first, last, count_);
    }
  }

 private:
  // Factors the columns [first, last).
  void Factor(int64_t first, int64_t last) const {
    constexpr int64_t kColumns = 8;
    const int64_t size = last - first, height = length_ - first;
    if (size > kColumns) {
      const int64_t middle = first + (size / 2 + kColumns - 1) / kColumns * kColumns;
      Factor(first, middle);
      Reflect(first, middle, last);
      return Factor(middle, last);
    }
    for (int64_t k = 0; k < size; ++k) {
      double* const v = columns_ + (first + k) * (length_ + 1);
      const double tau = taus_[first + k] = linalg::FindReflection(v, height - k);
      for (int64_t j = 1; j < size - k && tau != 0; ++j) {
        double* const x = v + j * length_;
        const double factor = tau * (x[0] + VectorOps::Dot(v + 1, x + 1, height - k - 1));
        x[0] -= factor;
        VectorOps::SubtractRow(v + 1, factor, height - k - 1, x + 1);
      }
    }
  }

  // Applies the reflections [first, middle) to the columns [middle, last).
  void Reflect(int64_t first, int64_t middle, int64_t last) const {
    if (last <= middle) return;
    ApplyPanel(products_, columns_ + first * (length_ + 1), length_, taus_ + first, middle - first, length_ - first,
               false, columns_ + middle * length_ + first, last - middle, length_, memory_);
  }

  Products products_;
  double* columns_;
  int64_t count_, length_;
  double *taus_, *memory_;
};

}  // namespace blocked
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
