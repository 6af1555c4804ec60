// SPDX-License-Identifier: Apache-2.0
// A k-d tree over each segment of a list of points, with the memory of all trees. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_POINTS_POINT_FOREST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_POINTS_POINT_FOREST_INL_H_
#undef POLYOP_OPS_POINTS_POINT_FOREST_INL_H_
#else
#define POLYOP_OPS_POINTS_POINT_FOREST_INL_H_
#endif

#include <cstdint>

#include "kernels/cpu/simd.h"
#include "ops/points/point_count.h"
#include "ops/points/point_tree-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

class PointForest {
 public:
  /// Segment s has rows [ends[s - 1], ends[s]). Call Build before anything else.
  PointForest(const Context& context, const int64_t* ends, int64_t num_segments)
      : context_(context),
        num_segments_(num_segments),
        num_points_(num_segments == 0 ? 0 : ends[num_segments - 1]),
        segments_(context.Allocate<TreeSegment>(num_segments)),
        sizes_(segments_ ? PlanTrees(ends, num_segments, segments_.data()) : TreeSizes{}),
        leaves_(context.Allocate<TreeLeaf>(sizes_.Fit() ? sizes_.leaves : 0)),
        blocks_(context.Allocate<TreeBoxes>(sizes_.Fit() ? sizes_.boxes : 0)) {}

  /// Builds the trees of rows (x, y, z).
  Status Build(const float* xyz) const {
    POLYOP_RETURN_IF_ERROR(CheckRowsOfClouds(num_segments_, num_points_));
    if (!sizes_.Fit()) {
      return InvalidArgument("expected fewer points, so that 31 bits can index the leaves, got ", num_points_, " in ",
                             num_segments_, " clouds");
    }
    if (!segments_ || !leaves_ || !blocks_) return Internal("out of memory: a tree of ", num_points_, " points");
    return TreeBuilder(context_, leaves_.data(), blocks_.data(), segments_.data(), num_segments_, num_points_).Run(xyz);
  }

  const TreeSegment& segment(int64_t s) const { return segments_[s]; }
  const TreeLeaf* leaves() const { return leaves_.data(); }
  const TreeBoxes* blocks() const { return blocks_.data(); }
  const TreeSizes& sizes() const { return sizes_; }

 private:
  const Context& context_;
  int64_t num_segments_, num_points_;
  Scratch<TreeSegment> segments_;
  TreeSizes sizes_;
  Scratch<TreeLeaf> leaves_;
  Scratch<TreeBoxes> blocks_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
