#include <algorithm>

#include "families/boxes/boxes_of_space.h"
#include "ops/boxes_iou3d/boxes_iou3d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes_iou3d/boxes_iou3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/boxes-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The boxes of a set, and the upright boxes around them.
struct BoxSet {
  Scratch<BoxOfSpace> boxes;
  Scratch<float> memory;
  BoxArrays bounds;

  BoxSet(const Context& context, int64_t count)
      : boxes(context.Allocate<BoxOfSpace>(count)),
        memory(context.Allocate<float>(BoxArrays::FloatsFor(count))),
        bounds(BoxArrays::In(memory.data(), count)) {}

  explicit operator bool() const { return boxes && memory; }
  template <class T>
  void Read(const Tensor<const T, 2>& rows) const {
    for (int64_t i = 0; i < rows.dim(0); ++i) {
      boxes[i] = BoxOfSpace::Of(rows.data() + 7 * i);
      SetBounds(bounds, i, boxes[i].above);
    }
  }
};

// Vectors of upright boxes tell which pairs may touch; few do.
template <class T>
Status BoxesIou3dCpu(const BoxesIou3d& op, const Context& context, Tensor<const T, 2> boxes_a,
                     Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  const int64_t rows = boxes_a.dim(0), columns = boxes_b.dim(0);
  const BoxSet a(context, rows), b(context, columns);
  if (!a || !b) return Internal("out of memory: scratch for ", rows, " and ", columns, " boxes");
  a.Read(boxes_a);
  b.Read(boxes_b);
  context.ParallelFor(rows, GrainFor(4.0 * static_cast<double>(columns)), [&](int64_t begin, int64_t end) HWY_ATTR {
    const BoxRange all{0, columns};
    for (int64_t i = begin; i < end; ++i) {
      T* const row = overlap.data() + i * columns;
      std::fill_n(row, columns, FromFloat<T>(0));
      AnySuspect<true>(a.bounds, i, b.bounds, std::span(&all, 1), 0, 0, [&](int64_t k) {
        row[k] = FromFloat<T>(static_cast<float>(op.Measure(a.boxes[i], b.boxes[k])));
        return false;  // go on
      });
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
POLYOP_CPU_KERNEL(BoxesIou3d, BoxesIou3dF32, BoxesIou3dCpu<float>);
POLYOP_CPU_KERNEL(BoxesIou3d, BoxesIou3dF16, BoxesIou3dCpu<Half>);
POLYOP_CPU_KERNEL(BoxesIou3d, BoxesIou3dBF16, BoxesIou3dCpu<BFloat16>);
}  // namespace polyop
#endif
