// SPDX-License-Identifier: Apache-2.0
// Measures all pairs of two sets of rotated boxes. A vectorised test of their upright bounds skips pairs that do not
// touch, which is most of them. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_BOXES_BOX_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_BOXES_BOX_PAIRS_INL_H_
#undef POLYOP_OPS_BOXES_BOX_PAIRS_INL_H_
#else
#define POLYOP_OPS_BOXES_BOX_PAIRS_INL_H_
#endif

#include <algorithm>
#include <span>

#include "kernels/cpu/simd.h"
#include "ops/boxes/boxes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The boxes of a set and their upright bounds.
template <class Box>
struct BoxSet {
  Scratch<Box> boxes;
  Scratch<float> memory;
  BoxArrays bounds;

  BoxSet(const Context& context, int64_t count)
      : boxes(context.Allocate<Box>(count)),
        memory(context.Allocate<float>(BoxArrays::FloatsFor(count))),
        bounds(BoxArrays::In(memory.data(), count)) {}

  explicit operator bool() const { return boxes && memory; }
};

/// Sets overlap[b, i, k] to measure(box i of batch b of the first set, box k of the second), or 0 if they do not touch.
/// box_of_a(i) and box_of_b(k) return the boxes, numbered across batches; footprint(box) returns its RotatedBox.
template <class Box, class T, class BoxOfA, class BoxOfB, class Footprint, class Measure>
Status MeasurePairs(const Context& context, int64_t batches, int64_t rows, int64_t columns, const BoxOfA& box_of_a,
                    const BoxOfB& box_of_b, const Footprint& footprint, const Measure& measure, T* overlap) {
  const BoxSet<Box> a(context, batches * rows), b(context, batches * columns);
  if (!a || !b) return Internal("out of memory: scratch for ", batches * rows, " and ", batches * columns, " boxes");
  const auto read = [&](const BoxSet<Box>& set, int64_t count, const auto& box_of) {
    for (int64_t i = 0; i < count; ++i) {
      set.boxes[i] = box_of(i);
      SetBounds(set.bounds, i, footprint(set.boxes[i]));
    }
  };
  read(a, batches * rows, box_of_a);
  read(b, batches * columns, box_of_b);
  const int64_t grain = GrainFor(4.0 * static_cast<double>(columns));
  context.ParallelFor(batches * rows, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i / rows * columns;
      T* const row = overlap + i * columns;
      std::fill_n(row, columns, FromFloat<T>(0));
      const BoxRange all{first, first + columns};
      AnySuspect<true>(a.bounds, i, b.bounds, std::span(&all, 1), 0, 0, [&](int64_t k) {
        row[k - first] = FromFloat<T>(static_cast<float>(measure(a.boxes[i], b.boxes[k])));
        return false;  // continue
      });
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
