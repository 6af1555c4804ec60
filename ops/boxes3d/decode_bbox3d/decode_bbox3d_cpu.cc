// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/boxes3d/decode_bbox3d/anchor_boxes.h"
#include "ops/boxes3d/decode_bbox3d/decode_bbox3d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes3d/decode_bbox3d/decode_bbox3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "ops/boxes/boxes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 1 << 12;  // anchors per task

// Writes the numbers of the anchors in [begin, end) that have a logit of at least `min_logit` to `kept`, in
// ascending order. Returns their number. Few anchors pass, so most logits are only compared by vectors.
template <class T>
int64_t CollectAnchors(const T* logits, int64_t begin, int64_t end, int64_t classes, float min_logit, int32_t* kept) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), last = end * classes;
  const auto bound = hn::Set(d, min_logit);
  int64_t found = 0, next = begin;  // anchors before `next` are decided
  for (int64_t i = begin * classes; i < last; i += lanes) {
    const int64_t width = std::min(lanes, last - i);
    const auto score =
        width == lanes ? LoadFloat(d, logits + i) : LoadFloatN(d, logits + i, static_cast<size_t>(width));
    VisitLanes(d, hn::Ge(score, bound), width, [&](int64_t lane) {
      const int64_t anchor = (i + lane) / classes;
      if (anchor >= next) kept[found++] = static_cast<int32_t>(anchor);
      next = std::max(next, anchor + 1);
      return false;
    });
  }
  return found;
}

template <class T>
Status DecodeBbox3dCpu(const DecodeBbox3d& op, const Context& context, Tensor<const T, 4> cls, Tensor<const T, 4> box,
                       Tensor<const T, 4> dir, Tensor<T, 3> boxes, Tensor<int32_t, 1> num) {
  const int64_t images = boxes.dim(0), count = boxes.dim(1), classes = cls.dim(3) / op.num_anchors();
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  const Scratch<int32_t> kept = context.Allocate<int32_t>(images * count);
  const Scratch<int64_t> found = context.Allocate<int64_t>(images * blocks);
  const Scratch<int64_t> before = context.Allocate<int64_t>(images * blocks);
  if (!kept || !found || !before) return Internal("out of memory: scratch for ", images * count, " anchors");
  const float min_logit = op.MinScore();
  context.ParallelFor(images * blocks, 4, [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t i = first; i < last; ++i) {
      const int64_t image = i / blocks, begin = i % blocks * kBlock, end = std::min(count, begin + kBlock);
      found[i] = CollectAnchors(cls.data() + image * count * classes, begin, end, classes, min_logit,
                                kept.data() + image * count + begin);
    }
  });
  for (int64_t image = 0; image < images; ++image) {
    int64_t rows = 0;
    for (int64_t b = image * blocks; b < (image + 1) * blocks; ++b) {
      before[b] = rows;
      rows += found[b];
    }
    num[image] = static_cast<int32_t>(rows);
  }
  const AnchorBoxes anchors(op, cls.dim(1), cls.dim(2));
  const bool stream = ShouldStream(9 * kBlock * static_cast<int64_t>(sizeof(T)), images * blocks);
  // Each task writes the rows of its kept anchors, and one row of zeros for each anchor that it dropped.
  context.ParallelFor(images * blocks, 2, [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t i = first; i < last; ++i) {
      const int64_t image = i / blocks, begin = i % blocks * kBlock, end = std::min(count, begin + kBlock);
      T* const rows = boxes.data() + image * count * 9;
      for (int64_t k = 0; k < found[i]; ++k) {
        const int64_t number = kept[image * count + begin + k], at = image * count + number;
        const T* const logits = cls.data() + at * classes;
        const int32_t label = BestClass(logits, classes, min_logit);
        anchors.Decode(number, box.data() + 7 * at, dir.data() + 2 * at, label, ToFloat(logits[label]),
                       rows + 9 * (before[i] + k));
      }
      const int64_t dropped = begin - before[i];
      FillWithZeros(rows + 9 * (num[image] + dropped), 9 * (end - begin - found[i]), stream);
    }
    if (stream) hwy::FlushStream();
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DecodeBbox3d, DecodeBbox3dCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
