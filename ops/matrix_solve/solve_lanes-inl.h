// Solves small systems of equations in parallel, one in each lane of a vector. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_MATRIX_SOLVE_SOLVE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_MATRIX_SOLVE_SOLVE_LANES_INL_H_
#undef POLYOP_OPS_MATRIX_SOLVE_SOLVE_LANES_INL_H_
#else
#define POLYOP_OPS_MATRIX_SOLVE_SOLVE_LANES_INL_H_
#endif

#include <algorithm>

#include "families/linalg/lanes-inl.h"
#include "ops/matrix_solve/solve_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The number of doubles that SolveGroup's `memory` must have space for.
template <class T>
int64_t SolveGroupDoubles(const EquationsToSolve<T>& equations) {
  return LaneMatrices::Doubles(equations.size, equations.size + equations.columns + 1);
}

/// Solves `count` systems, except for those whose matrix is singular: their done[] is 0.
template <class T>
void SolveGroup(const EquationsToSolve<T>& equations, int64_t first, int64_t count, double* memory, double* done) {
  using Method = MatrixSolve::Method;
  const int64_t size = equations.size, columns = equations.columns, lanes = RealLanes();
  const LaneMatrices a{memory, size, size}, b{memory + LaneMatrices::Doubles(size, size), size, columns};
  double* const rows = b.elements + LaneMatrices::Doubles(size, columns);
  const int64_t area = size * size;
  const T* const from = equations.from + first * area;
  const PrefetchInSteps<T> fetch(area, from + count * area, std::min(count, equations.count - first - count));
  if (equations.method == Method::kLower || equations.method == Method::kCholesky) {
    a.ReadLowerTriangle(from, count);
  } else if (equations.method == Method::kUpper) {
    a.ReadUpperTriangle(from, count);
  } else {
    a.Read(from, count);
  }
  b.Read(equations.right + first * size * columns, count);
  int64_t exchanges = size;
  auto regular = AllLanes();
  if (equations.method == Method::kGeneral) {
    regular = FactorLuInLanes(a, rows, fetch);
  } else if (equations.method == Method::kLu) {
    fetch(0, 1);
    exchanges = equations.pivot_count;
    for (int64_t e = 0; e < exchanges * lanes; ++e) {
      const int64_t n = first + std::min(e % lanes, count - 1);
      rows[e] = static_cast<double>(equations.pivots[n * exchanges + e / lanes]) - 1;
    }
  }
  if (equations.method == Method::kLower || equations.method == Method::kUpper) {
    TriangularSolveInLanes({equations.method == Method::kUpper, equations.unit, equations.transpose}, a, b, fetch);
  } else if (equations.method == Method::kCholesky) {
    TriangularSolveInLanes({false, false, false}, a, b, fetch);
    TriangularSolveInLanes({false, false, true}, a, b);
  } else if (equations.transpose) {
    TriangularSolveInLanes({true, false, true}, a, b);
    TriangularSolveInLanes({false, true, true}, a, b);
    ExchangeRowsInLanes(rows, exchanges, true, b);
  } else {
    ExchangeRowsInLanes(rows, exchanges, false, b);
    TriangularSolveInLanes({false, true, false}, a, b);
    TriangularSolveInLanes({true, false, false}, a, b);
  }
  StoreLanes(regular, done);
  b.Write(done, count, equations.to + first * size * columns);
  for (int64_t m = 0; m < count; ++m) {
    if (done[m] != 0) equations.info[first + m] = 0;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
