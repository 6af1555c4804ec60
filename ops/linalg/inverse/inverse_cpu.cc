// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/inverse/inverse_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/inverse/inverse.h"
#include "ops/linalg/inverse/inverse_errors.h"
#include "ops/linalg/inverse/inverse_lanes-inl.h"
#include "ops/linalg/inverse/inverse_rule.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes row[i] -= factor * pivot[i] without fused operations, so the result is the same on every instruction set.
void SubtractRow(const double* pivot, double factor, int64_t count, double* row) {
  const hn::ScalableTag<double> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Sub(hn::LoadU(d, row + i), hn::Mul(f, hn::LoadU(d, pivot + i))), d, row + i);
  }
  for (; i < count; ++i) row[i] -= factor * pivot[i];
}

// Gauss-Jordan elimination in place. Returns false if a pivot is missing. Requires: `swapped` has space for `size` row
// indices.
bool InvertScaled(double* matrix, int64_t size, int64_t* swapped) {
  for (int64_t k = 0; k < size; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < size; ++i) {
      if (std::fabs(matrix[i * size + k]) > std::fabs(matrix[best * size + k])) best = i;
    }
    const double pivot = matrix[best * size + k];
    if (!IsPivot(pivot, size)) return false;
    swapped[k] = best;
    double* const row = matrix + k * size;
    if (best != k) std::swap_ranges(row, row + size, matrix + best * size);
    const double inverse = 1 / pivot;
    row[k] = 1;
    for (int64_t j = 0; j < size; ++j) row[j] *= inverse;
    for (int64_t i = 0; i < size; ++i) {
      if (i == k) continue;
      const double factor = std::exchange(matrix[i * size + k], 0.0);
      SubtractRow(row, factor, size, matrix + i * size);
    }
  }
  for (int64_t k = size; k-- > 0;) {
    for (int64_t i = 0; i < size && swapped[k] != k; ++i)
      std::swap(matrix[i * size + k], matrix[i * size + swapped[k]]);
  }
  return true;
}

// The scratch memory of one task. A large matrix also has memory for blocks.
struct InverseScratch {
  double *matrix, *row_scale, *column_scale;
  int64_t* swapped;
  double* blocks = nullptr;
  int32_t* pivots = nullptr;
  const Context* context = nullptr;
};

int64_t BlockDoubles(int64_t size) { return size * size + blocked::Products::Doubles(size); }

// InvertScaled by blocks.
bool InvertScaledByBlocks(const InverseScratch& scratch, int64_t size) {
  const int64_t area = size * size;
  double *const matrix = scratch.matrix, *const factors = scratch.blocks;
  if (!AllFinite(matrix, area)) return false;
  const blocked::Products products(scratch.context, factors + area);
  std::copy_n(matrix, area, factors);
  blocked::FactorLu(products, factors, size, size, size, scratch.pivots);
  std::fill_n(matrix, area, 0.0);
  for (int64_t k = 0; k < size; ++k) {
    if (!IsPivot(factors[k * size + k], size)) return false;
    matrix[k * size + k] = 1;
  }
  const blocked::View triangles{factors, size, 1};
  const auto solve = [&](const blocked::Products& own, int64_t first, int64_t count) {
    constexpr int64_t kColumns = 64;  // the rows above them stay 0 when the lower triangle is solved
    for (int64_t j = first; j < first + count; j += kColumns) {
      blocked::SolveTriangle(own, triangles.At(j, j), true, true, size - j, matrix + j * (size + 1),
                             std::min(kColumns, first + count - j), size);
    }
    blocked::SolveTriangle(own, triangles, false, false, size, matrix + first, count, size);
  };
  products.ForColumns(size, 0.1 * static_cast<double>(area), solve);
  products.ForRange(size, static_cast<double>(size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {  // the columns, in the rows' reverse order
      double* const row = matrix + i * size;
      for (int64_t k = size; k-- > 0;) std::swap(row[k], row[scratch.pivots[k] - 1]);
    }
  });
  return true;
}

template <class T>
void Invert(const T* from, int64_t size, const InverseScratch& scratch, T* to) {
  double* const matrix = scratch.matrix;
  for (int64_t i = 0; i < size; ++i) {
    double largest = 0;
    for (int64_t j = 0; j < size; ++j) largest = LargerMagnitude(largest, ToFloat(from[i * size + j]));
    scratch.row_scale[i] = InverseScale(largest);
    for (int64_t j = 0; j < size; ++j) matrix[i * size + j] = ToFloat(from[i * size + j]) * scratch.row_scale[i];
  }
  std::fill_n(scratch.column_scale, size, 0.0);
  for (int64_t e = 0; e < size * size; e += size) {  // rows, which are one after the other in memory
    for (int64_t j = 0; j < size; ++j) {
      scratch.column_scale[j] = LargerMagnitude(scratch.column_scale[j], matrix[e + j]);
    }
  }
  for (int64_t j = 0; j < size; ++j) scratch.column_scale[j] = InverseScale(scratch.column_scale[j]);
  for (int64_t e = 0; e < size * size; e += size) {
    for (int64_t j = 0; j < size; ++j) matrix[e + j] *= scratch.column_scale[j];
  }
  const bool inverted =
      scratch.blocks != nullptr ? InvertScaledByBlocks(scratch, size) : InvertScaled(matrix, size, scratch.swapped);
  if (!inverted) {
    std::fill_n(to, size * size, FromFloat<T>(NAN));
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      const double value = matrix[i * size + j] * scratch.column_scale[i] * scratch.row_scale[j];
      to[i * size + j] = FromFloat<T>(static_cast<float>(value));
    }
  }
}

template <class T>
Status InvertInLanes(const Context& context, const T* from, int64_t count, int64_t size, T* to) {
  const MatricesToInvert<T> matrices{from, to, size};
  const bool enough_memory = WithConstantSize(size, [&]<class Size>(Size) {
    using Group = InverseLanes<T, Size>;
    return ForLaneGroups<kInterleavedGroups<Size>>(
        context, count, static_cast<double>(size * size * size + 60) * 0.3, Group::Doubles(size),
        [&](int64_t first, int64_t here, double* memory, double* done)
            HWY_ATTR { ComputeInterleaved<Group, Size>(matrices, first, here, memory, done); },
        [](int64_t, double*) {});  // a matrix without an inverse has a result, too
  });
  return enough_memory ? Status::Ok() : Internal("out of memory: matrices of ", size, " rows");
}

template <class T>
Status InvertAll(const Context& context, Tensor<const T, kAnyRank> input, Tensor<T, kAnyRank> output) {
  const int64_t size = input.dim(input.rank() - 1), count = input.size() / (size * size);
  if (size <= kMaxSizeInLanes) return InvertInLanes(context, input.data(), count, size, output.data());
  if (size >= blocked::kMinSize) {
    const int64_t matrix = (size + 3) * size;
    const auto invert = [&](int64_t n, double* work, const Context* threads) {
      double* const pivots = work + (size + 2) * size;
      const InverseScratch scratch{work,    work + size * size, work + (size + 1) * size,
                                   nullptr, work + matrix,      reinterpret_cast<int32_t*>(pivots),
                                   threads};
      Invert(input.data() + n * size * size, size, scratch, output.data() + n * size * size);
    };
    if (blocked::ForLargeMatrices(context, count, matrix + BlockDoubles(size), invert)) return Status::Ok();
    return Internal("out of memory: a matrix of ", size, " rows");
  }
  const double cubed = static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
  const int64_t grain = GrainFor(cubed + 20);
  const auto invert = [&](double* matrix, int64_t begin, int64_t end) HWY_ATTR {
    double* const rows = matrix + (size + 2) * size;
    const InverseScratch scratch{matrix, matrix + size * size, matrix + (size + 1) * size,
                                 reinterpret_cast<int64_t*>(rows)};
    for (int64_t n = begin; n < end; ++n) {
      Invert(input.data() + n * size * size, size, scratch, output.data() + n * size * size);
    }
  };
  if (context.ParallelForWithScratch<double>(count, grain, (size + 3) * size, invert)) return Status::Ok();
  return Internal("out of memory: a matrix of ", size, " rows");
}

template <class T>
Status InverseCpu(const Inverse& op, const Context& context, Tensor<const T, kAnyRank> input,
                  Tensor<T, kAnyRank> output) {
  POLYOP_RETURN_IF_ERROR(InvertAll(context, input, output));
  return CheckInverse(op, input, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Inverse, InverseCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
