#include <algorithm>

#include "families/boxes/coded_boxes.h"
#include "families/boxes/score_order.h"
#include "ops/efficient_nms/efficient_nms.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/efficient_nms/efficient_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/boxes-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 1 << 14;  // elements whose scores a task looks at

// FallingKeyOf an element, whose number is box * classes + class.
using Key = uint64_t;

// Writes the keys of scores[begin, end) that pass, but for the background; returns how many they are.
template <class T>
int64_t CollectKeys(const T* scores, int64_t begin, int64_t end, int64_t classes, int64_t background, float least,
                    Key* keys) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bound = hn::Set(d, least);
  int64_t found = 0;
  for (int64_t i = begin; i < end; i += lanes) {
    const int64_t width = std::min(lanes, end - i);
    const auto score = LoadFloatN(d, scores + i, static_cast<size_t>(width));
    VisitLanes(d, hn::Ge(score, bound), width, [&](int64_t lane) {
      const int64_t element = i + lane;
      if (background < 0 || element % classes != background) {
        keys[found++] = FallingKeyOf(ToFloat(scores[element]), element);
      }
      return false;
    });
  }
  return found;
}

// Keys by rising value, sorted no further than they are asked for.
class LazyOrder {
 public:
  LazyOrder(Key* keys, int64_t count) : keys_(keys), count_(count) {}
  int64_t count() const { return count_; }
  int64_t Element(int64_t rank) {
    if (rank >= sorted_) SortMore();
    return static_cast<int64_t>(keys_[rank] & 0xFFFFFFFF);
  }

 private:
  void SortMore() {
    const int64_t end = std::min(count_, std::max<int64_t>(1024, 2 * sorted_));
    if (end < count_) std::nth_element(keys_ + sorted_, keys_ + end, keys_ + count_);
    std::sort(keys_ + sorted_, keys_ + end);
    sorted_ = end;
  }

  Key* keys_;
  int64_t count_, sorted_ = 0;
};

// A picture's detections while they are found.
struct KeptBoxes {
  BoxArrays corners;  // in order
  int32_t* element;
  int32_t* label;
};

template <class T>
class Picture {
 public:
  Picture(const EfficientNms& op, const CodedBoxes<T>& boxes, int64_t number, int64_t classes)
      : op_(op), boxes_(boxes), number_(number), classes_(classes) {}

  // Visits the elements in their order; returns how many are kept. `candidate`: room for one box.
  int64_t Suppress(LazyOrder* order, const BoxArrays& candidate, const KeptBoxes& kept) const {
    int64_t count = 0;
    for (int64_t rank = 0; rank < order->count() && count < op_.max_output_boxes; ++rank) {
      const int64_t element = order->Element(rank);
      const auto label = static_cast<int32_t>(element % classes_);
      float corners[4];
      boxes_.Corners(number_, element / classes_, label, corners);
      CodedBoxes<T>::InOrder(corners);
      candidate.Set(0, corners, 0);
      const bool suppressed =
          AnySuspect<false>(candidate, 0, kept.corners, 0, count, 0, op_.iou_threshold, [&](int64_t k) {
            return (op_.class_agnostic || kept.label[k] == label) &&
                   candidate.Overlap(0, kept.corners, k, 0).AtLeast(op_.iou_threshold);
          });
      if (suppressed) continue;
      kept.corners.Copy(count, candidate, 0);
      kept.element[count] = static_cast<int32_t>(element);
      kept.label[count] = label;
      ++count;
    }
    return count;
  }

 private:
  const EfficientNms& op_;
  const CodedBoxes<T>& boxes_;
  const int64_t number_, classes_;
};

template <class T>
float Shown(const EfficientNms& op, T score) {
  const float s = ToFloat(score);
  return op.score_activation ? static_cast<float>(1 / (1 + std::exp(-static_cast<double>(s)))) : s;
}

template <class T>
Status Suppress(const EfficientNms& op, const Context& context, const T* boxes, int64_t box_classes,
                Tensor<const T, 3> scores, std::optional<Tensor<const T, 3>> anchors, Tensor<int32_t, 2> num,
                Tensor<T, 3> out_boxes, Tensor<T, 2> out_scores, Tensor<int32_t, 2> out_classes,
                std::optional<Tensor<int32_t, 2>> out_indices) {
  const int64_t pictures = scores.dim(0), count = scores.dim(1), classes = count == 0 ? 0 : scores.dim(2);
  const int64_t elements = count * classes, keep = op.max_output_boxes, most = std::min(keep, elements);
  const CodedBoxes<T> coded{
      boxes,       anchors ? anchors->data() : nullptr, count,
      box_classes, anchors && anchors->dim(0) == 1,     op.box_coding == EfficientNms::Coding::kCenterSize};
  const int64_t blocks = (elements + kBlock - 1) / kBlock;
  const int64_t tasks = Context::NumTasks(pictures, 1), floats = BoxArrays::FloatsFor(most) + BoxArrays::FloatsFor(1);
  const Scratch<Key> keys = context.Allocate<Key>(pictures * elements);
  const Scratch<int64_t> found = context.Allocate<int64_t>(pictures * blocks);
  const Scratch<float> memory = context.Allocate<float>(tasks * floats);
  const Scratch<int32_t> numbers = context.Allocate<int32_t>(tasks * 2 * most);
  if (!keys || !found || !memory || !numbers) {
    return Internal("out of memory: scratch for 'scores' of shape ", ToString(scores.shape()));
  }
  const float least = op.LeastScore();
  context.ParallelFor(pictures * blocks, 2, [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t i = first; i < last; ++i) {
      const int64_t picture = i / blocks, begin = i % blocks * kBlock, end = std::min(elements, begin + kBlock);
      found[i] = CollectKeys(scores.data() + picture * elements, begin, end, classes, op.background_class, least,
                             keys.data() + picture * elements + begin);
    }
  });
  context.ParallelFor(pictures, 1, [&](int64_t task, int64_t first, int64_t last) HWY_ATTR {
    float* const corners = memory.data() + task * floats;
    int32_t* const mine = numbers.data() + task * 2 * most;
    const KeptBoxes kept{BoxArrays::In(corners, most), mine, mine + most};
    const BoxArrays candidate = BoxArrays::In(corners + BoxArrays::FloatsFor(most), 1);
    for (int64_t picture = first; picture < last; ++picture) {
      Key* const all = keys.data() + picture * elements;
      int64_t total = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t n = found[picture * blocks + b];
        std::copy_n(all + b * kBlock, n, all + total);
        total += n;
      }
      LazyOrder order(all, total);
      const int64_t rows = Picture<T>(op, coded, picture, classes).Suppress(&order, candidate, kept);
      num[picture] = static_cast<int32_t>(rows);
      for (int64_t k = 0; k < keep; ++k) {
        const int64_t row = picture * keep + k, element = k < rows ? kept.element[k] : 0;
        float box[4] = {};
        if (k < rows) coded.Corners(picture, element / classes, kept.label[k], box);
        for (int i = 0; i < 4; ++i) out_boxes[4 * row + i] = FromFloat<T>(box[i]);
        out_scores[row] = FromFloat<T>(k < rows ? Shown(op, scores[picture * elements + element]) : 0.0f);
        out_classes[row] = k < rows ? kept.label[k] : 0;
        if (out_indices) (*out_indices)[row] = k < rows ? static_cast<int32_t>(element / classes) : 0;
      }
    }
  });
  return Status::Ok();
}

// A row of boxes for all classes, or one for each.
template <class T>
Status EfficientNmsCpu3(const EfficientNms& op, const Context& context, Tensor<const T, 3> boxes,
                        Tensor<const T, 3> scores, std::optional<Tensor<const T, 3>> anchors, Tensor<int32_t, 2> num,
                        Tensor<T, 3> out_boxes, Tensor<T, 2> out_scores, Tensor<int32_t, 2> out_classes,
                        std::optional<Tensor<int32_t, 2>> out_indices) {
  return Suppress(op, context, boxes.data(), 1, scores, anchors, num, out_boxes, out_scores, out_classes, out_indices);
}
template <class T>
Status EfficientNmsCpu4(const EfficientNms& op, const Context& context, Tensor<const T, 4> boxes,
                        Tensor<const T, 3> scores, std::optional<Tensor<const T, 3>> anchors, Tensor<int32_t, 2> num,
                        Tensor<T, 3> out_boxes, Tensor<T, 2> out_scores, Tensor<int32_t, 2> out_classes,
                        std::optional<Tensor<int32_t, 2>> out_indices) {
  return Suppress(op, context, boxes.data(), boxes.dim(2), scores, anchors, num, out_boxes, out_scores, out_classes,
                  out_indices);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(EfficientNms, EfficientNmsF32R3, EfficientNmsCpu3<float>);
POLYOP_CPU_KERNEL(EfficientNms, EfficientNmsF32R4, EfficientNmsCpu4<float>);
POLYOP_CPU_KERNEL(EfficientNms, EfficientNmsF16R3, EfficientNmsCpu3<Half>);
POLYOP_CPU_KERNEL(EfficientNms, EfficientNmsF16R4, EfficientNmsCpu4<Half>);
POLYOP_CPU_KERNEL(EfficientNms, EfficientNmsBF16R3, EfficientNmsCpu3<BFloat16>);
POLYOP_CPU_KERNEL(EfficientNms, EfficientNmsBF16R4, EfficientNmsCpu4<BFloat16>);
}  // namespace polyop
#endif
