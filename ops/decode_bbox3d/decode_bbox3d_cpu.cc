#include <algorithm>

#include "ops/decode_bbox3d/anchor_boxes.h"
#include "ops/decode_bbox3d/decode_bbox3d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/decode_bbox3d/decode_bbox3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/boxes-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 1 << 12;  // anchors that a task looks at

// Writes the numbers of those of the anchors [begin, end) that have a logit of at least `least`, by rising number;
// returns how many they are. Few pass, so most logits are looked at by vectors alone.
template <class T>
int64_t CollectAnchors(const T* logits, int64_t begin, int64_t end, int64_t classes, float least, int32_t* kept) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), last = end * classes;
  const auto bound = hn::Set(d, least);
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
  const int64_t pictures = boxes.dim(0), count = boxes.dim(1), classes = cls.dim(3) / op.num_anchors();
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  const Scratch<int32_t> kept = context.Allocate<int32_t>(pictures * count);
  const Scratch<int64_t> found = context.Allocate<int64_t>(pictures * blocks);
  const Scratch<int64_t> before = context.Allocate<int64_t>(pictures * blocks);
  if (!kept || !found || !before) return Internal("out of memory: scratch for ", pictures * count, " anchors");
  const float least = op.LeastScore();
  context.ParallelFor(pictures * blocks, 4, [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t i = first; i < last; ++i) {
      const int64_t picture = i / blocks, begin = i % blocks * kBlock, end = std::min(count, begin + kBlock);
      found[i] = CollectAnchors(cls.data() + picture * count * classes, begin, end, classes, least,
                                kept.data() + picture * count + begin);
    }
  });
  for (int64_t picture = 0; picture < pictures; ++picture) {
    int64_t rows = 0;
    for (int64_t b = picture * blocks; b < (picture + 1) * blocks; ++b) {
      before[b] = rows;
      rows += found[b];
    }
    num[picture] = static_cast<int32_t>(rows);
  }
  const AnchorBoxes anchors(op, cls.dim(1), cls.dim(2));
  const bool stream = ShouldStream(9 * kBlock * static_cast<int64_t>(sizeof(T)), pictures * blocks);
  // A block writes the rows of what it kept, and as many rows of 0 as it did not keep.
  context.ParallelFor(pictures * blocks, 2, [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t i = first; i < last; ++i) {
      const int64_t picture = i / blocks, begin = i % blocks * kBlock, end = std::min(count, begin + kBlock);
      T* const rows = boxes.data() + picture * count * 9;
      for (int64_t k = 0; k < found[i]; ++k) {
        const int64_t number = kept[picture * count + begin + k], at = picture * count + number;
        const T* const logits = cls.data() + at * classes;
        const int32_t label = BestClass(logits, classes, least);
        anchors.Decode(number, box.data() + 7 * at, dir.data() + 2 * at, label, ToFloat(logits[label]),
                       rows + 9 * (before[i] + k));
      }
      const int64_t left_out = begin - before[i];
      FillWithZeros(rows + 9 * (num[picture] + left_out), 9 * (end - begin - found[i]), stream);
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
POLYOP_CPU_KERNEL(DecodeBbox3d, DecodeBbox3dF32, DecodeBbox3dCpu<float>);
POLYOP_CPU_KERNEL(DecodeBbox3d, DecodeBbox3dF16, DecodeBbox3dCpu<Half>);
POLYOP_CPU_KERNEL(DecodeBbox3d, DecodeBbox3dBF16, DecodeBbox3dCpu<BFloat16>);
}  // namespace polyop
#endif
