// SPDX-License-Identifier: Apache-2.0
// Vectorised point-in-box tests: one point against many 3-D boxes, or one box against many points. Compiled once per
// instruction set; include it from a kernel file.

// Outside of the guard because Highway redefines its macros for each target.
#include "kernels/cpu/mask_bits-inl.h"
#include "kernels/cpu/simd.h"

#if defined(POLYOP_OPS_BOXES3D_POINTS_IN_BOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BOXES3D_POINTS_IN_BOX_INL_H_
#undef POLYOP_OPS_BOXES3D_POINTS_IN_BOX_INL_H_
#else
#define POLYOP_OPS_BOXES3D_POINTS_IN_BOX_INL_H_
#endif

#include <bit>
#include <cmath>

#include "ops/boxes3d/box3d.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Columns of doubles whose length is a multiple of every vector's length.
class DoubleColumns {
 public:
  DoubleColumns(const Context& context, int width, int64_t count)
      : count_(count), memory_(context.Allocate<double>(width * count)) {}

  explicit operator bool() const { return static_cast<bool>(memory_); }
  double* column(int k) const { return memory_.data() + k * count_; }

  static int64_t PaddedCount(int64_t count) { return (count + 15) / 16 * 16; }

 private:
  int64_t count_;
  Scratch<double> memory_;
};

/// One Box3d per lane.
template <class D>
struct BoxLanes {
  hn::Vec<D> x, y, z, half_x, half_y, half_z, cosine, sine;

  static HWY_INLINE BoxLanes Of(D d, const Box3d& box) {
    return {hn::Set(d, box.bev.x),          hn::Set(d, box.bev.y),           hn::Set(d, box.z),
            hn::Set(d, box.bev.half_width), hn::Set(d, box.bev.half_height), hn::Set(d, box.half_z),
            hn::Set(d, box.bev.cosine),     hn::Set(d, box.bev.sine)};
  }
  static HWY_INLINE BoxLanes Load(D d, const DoubleColumns& boxes, int64_t at) {
    return {hn::LoadU(d, boxes.column(0) + at), hn::LoadU(d, boxes.column(1) + at), hn::LoadU(d, boxes.column(2) + at),
            hn::LoadU(d, boxes.column(3) + at), hn::LoadU(d, boxes.column(4) + at), hn::LoadU(d, boxes.column(5) + at),
            hn::LoadU(d, boxes.column(6) + at), hn::LoadU(d, boxes.column(7) + at)};
  }

  /// Box3d::Holds for each lane, with the same rounding.
  HWY_INLINE hn::Mask<D> Hold(D, hn::Vec<D> px, hn::Vec<D> py, hn::Vec<D> pz) const {
    const auto from_x = hn::Sub(px, x), from_y = hn::Sub(py, y);
    const auto along = hn::Add(hn::Mul(from_x, cosine), hn::Mul(from_y, sine));
    const auto across = hn::Sub(hn::Mul(from_y, cosine), hn::Mul(from_x, sine));
    return hn::And(hn::Le(hn::Abs(hn::Sub(pz, z)), half_z),
                   hn::And(hn::Lt(hn::Abs(along), half_x), hn::Lt(hn::Abs(across), half_y)));
  }
};

/// The eight numbers of each Box3d that the test needs. Each batch is padded to whole vectors with NaN.
template <class T>
class BoxColumns {
 public:
  BoxColumns(const Context& context, const Tensor<const T, 3>& boxes)
      : boxes_(boxes),
        stride_(DoubleColumns::PaddedCount(boxes.dim(1))),
        columns_(context, 8, boxes.dim(0) * stride_) {}

  Status Read() const {
    if (!columns_) return Internal("out of memory: ", boxes_.dim(0), " x ", boxes_.dim(1), " boxes");
    for (int64_t i = 0; i < boxes_.dim(0) * stride_; ++i) {
      const int64_t batch = i / stride_, k = i % stride_;
      if (k >= boxes_.dim(1)) {
        for (int n = 0; n < 8; ++n) columns_.column(n)[i] = NAN;
        continue;
      }
      const Box3d box = Box3d::OfBottom(boxes_.data() + 7 * (batch * boxes_.dim(1) + k));
      const double numbers[8] = {box.bev.x,           box.bev.y,  box.z,          box.bev.half_width,
                                 box.bev.half_height, box.half_z, box.bev.cosine, box.bev.sine};
      for (int n = 0; n < 8; ++n) columns_.column(n)[i] = numbers[n];
    }
    return Status::Ok();
  }
  /// Returns which of the boxes k, k + 1, … of a batch hold the point, one per lane; false after the last box.
  template <class D>
  HWY_INLINE hn::Mask<D> Hold(D d, int64_t batch, int64_t k, const T* point) const {
    return BoxLanes<D>::Load(d, columns_, batch * stride_ + k)
        .Hold(d, hn::Set(d, static_cast<double>(ToFloat(point[0]))), hn::Set(d, static_cast<double>(ToFloat(point[1]))),
              hn::Set(d, static_cast<double>(ToFloat(point[2]))));
  }

 private:
  const Tensor<const T, 3> boxes_;
  const int64_t stride_;
  const DoubleColumns columns_;
};

/// The coordinates of points. Each batch is padded to whole vectors with NaN.
template <class T>
class PointColumns {
 public:
  PointColumns(const Context& context, const Tensor<const T, 3>& points)
      : points_(points),
        stride_(DoubleColumns::PaddedCount(points.dim(1))),
        columns_(context, 3, points.dim(0) * stride_) {}

  Status Read(const Context& context) const {
    if (!columns_) return Internal("out of memory: ", points_.dim(0), " x ", points_.dim(1), " points");
    context.ParallelFor(points_.dim(0) * stride_, GrainFor(3.0), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t batch = i / stride_, k = i % stride_;
        for (int a = 0; a < 3; ++a) {
          const bool is_point = k < points_.dim(1);
          columns_.column(a)[i] =
              is_point ? static_cast<double>(ToFloat(points_[3 * (batch * points_.dim(1) + k) + a])) : NAN;
        }
      }
    });
    return Status::Ok();
  }
  /// Calls visit(i) for each point of a batch inside the box, in ascending order, until it returns false.
  template <class Visit>
  HWY_INLINE void ForInside(const Box3d& box, int64_t batch, const Visit& visit) const {
    const hn::CappedTag<double, 8> d;
    const auto lanes_of_box = BoxLanes<decltype(d)>::Of(d, box);
    const int64_t first = batch * stride_;
    for (int64_t i = 0; i < points_.dim(1); i += static_cast<int64_t>(hn::Lanes(d))) {
      const auto inside =
          lanes_of_box.Hold(d, hn::LoadU(d, columns_.column(0) + first + i),
                            hn::LoadU(d, columns_.column(1) + first + i), hn::LoadU(d, columns_.column(2) + first + i));
      if (hn::AllFalse(d, inside)) continue;
      for (uint64_t bits = BitsOf(d, inside); bits != 0; bits &= bits - 1) {
        if (!visit(i + std::countr_zero(bits))) return;
      }
    }
  }

 private:
  const Tensor<const T, 3> points_;
  const int64_t stride_;
  const DoubleColumns columns_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
