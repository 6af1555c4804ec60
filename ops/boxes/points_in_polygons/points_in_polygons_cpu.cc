// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/points_in_polygons/points_in_polygons_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/points_in_polygons/points_in_polygons.h"
#include "ops/boxes3d/points_in_box-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Writes columns of the minimum and maximum x and y and of x and y of each corner. Padding is NaN, so that every
// comparison with it is false.
template <class T>
void ReadPolygons(const Tensor<const T, 2>& polygons, int64_t padded, const DoubleColumns& columns) {
  const int64_t coordinates = polygons.dim(1);
  for (int64_t i = 0; i < padded; ++i) {
    const T* const from = polygons.data() + i * coordinates;
    bool finite = i < polygons.dim(0);
    for (int64_t k = 0; finite && k < coordinates; ++k) finite = std::isfinite(ToFloat(from[k]));
    double low[2] = {NAN, NAN}, high[2] = {NAN, NAN};
    for (int64_t k = 0; k < coordinates; ++k) {
      const double value = finite ? static_cast<double>(ToFloat(from[k])) : NAN;
      columns.column(static_cast<int>(4 + k))[i] = value;
      low[k % 2] = k < 2 ? value : std::min(low[k % 2], value);
      high[k % 2] = k < 2 ? value : std::max(high[k % 2], value);
    }
    for (int a = 0; a < 2; ++a) {
      columns.column(a)[i] = low[a];
      columns.column(2 + a)[i] = high[a];
    }
  }
}

// Processes a vector of polygons at a time, for one point after the other.
template <class T>
Status PointsInPolygonsCpu(const PointsInPolygons&, const Context& context, Tensor<const T, 2> points,
                           Tensor<const T, 2> polygons, Tensor<int32_t, 2> inside) {
  const int64_t count = polygons.dim(0), corners = polygons.dim(1) / 2, padded = DoubleColumns::PaddedCount(count);
  if (corners > INT32_MAX / 2 - 2)
    return InvalidArgument("'polygons': expected at most ", INT32_MAX / 2 - 2, " corners, got ", corners);
  const DoubleColumns columns(context, static_cast<int>(4 + 2 * corners), padded);
  if (!columns) return Internal("out of memory: ", count, " polygons");
  ReadPolygons(polygons, padded, columns);
  const double nanoseconds = 5.0 + 0.5 * static_cast<double>(count) * static_cast<double>(corners);
  context.ParallelFor(points.dim(0), GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    const hn::ScalableTag<double> d;
    const hn::Rebind<int32_t, decltype(d)> di;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = begin; i < end; ++i) {
      const auto px = hn::Set(d, static_cast<double>(ToFloat(points[2 * i])));
      const auto py = hn::Set(d, static_cast<double>(ToFloat(points[2 * i + 1])));
      for (int64_t k = 0; k < count; k += lanes) {
        const auto column = [&](int64_t c) { return hn::LoadU(d, columns.column(static_cast<int>(c)) + k); };
        const auto near = hn::And(hn::And(hn::Lt(column(0), px), hn::Lt(px, column(2))),
                                  hn::And(hn::Lt(column(1), py), hn::Lt(py, column(3))));
        auto odd = hn::MaskFalse(d), on_side = odd;
        if (!hn::AllFalse(d, near)) {
          auto ax = column(2 + 2 * corners), ay = column(3 + 2 * corners);
          for (int64_t c = 0; c < corners; ++c) {
            const auto bx = column(4 + 2 * c), by = column(5 + 2 * c);
            const auto up = hn::And(hn::Le(ay, py), hn::Gt(by, py)), down = hn::And(hn::Gt(ay, py), hn::Le(by, py));
            const auto side =
                hn::Sub(hn::Mul(hn::Sub(bx, ax), hn::Sub(py, ay)), hn::Mul(hn::Sub(by, ay), hn::Sub(px, ax)));
            odd =
                hn::Xor(odd, hn::Or(hn::And(up, hn::Gt(side, hn::Zero(d))), hn::And(down, hn::Lt(side, hn::Zero(d)))));
            const auto within = hn::And(hn::And(hn::Le(hn::Min(ax, bx), px), hn::Le(px, hn::Max(ax, bx))),
                                        hn::And(hn::Le(hn::Min(ay, by), py), hn::Le(py, hn::Max(ay, by))));
            on_side = hn::Or(on_side, hn::And(within, hn::Eq(side, hn::Zero(d))));
            ax = bx;
            ay = by;
          }
        }
        const auto holds = hn::AndNot(on_side, hn::And(odd, near));
        const auto ones = hn::DemoteTo(di, hn::IfThenElseZero(holds, hn::Set(d, 1.0)));
        hn::StoreN(ones, di, inside.data() + i * count + k, static_cast<size_t>(std::min(lanes, count - k)));
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(PointsInPolygons, PointsInPolygonsCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
