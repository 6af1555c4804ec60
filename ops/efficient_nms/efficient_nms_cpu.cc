#include <algorithm>

#include "families/boxes/coded_boxes.h"
#include "families/boxes/score_order.h"
#include "ops/efficient_nms/efficient_nms.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/efficient_nms/efficient_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/suppression-inl.h"
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

// Some elements in their order, with their classes, and those kept of them and of the ones before.
struct Elements : SortedBoxes {
  static constexpr double kNanosecondsPerPair = 0.3;
  const EfficientNms& op;
  int32_t *element, *label, *kept_element, *kept_label;

  static constexpr int64_t kNumbers = 4;  // int32 for each box
  static Elements In(void* memory, int32_t* numbers, int64_t capacity, const EfficientNms& op) {
    return {SortedBoxes::In(memory, capacity, 0),
            op,
            numbers,
            numbers + capacity,
            numbers + 2 * capacity,
            numbers + 3 * capacity};
  }
  bool Overlaps(int64_t candidate, const KeptAmong& among) const {
    return AnySuspectAmong<false>(candidate, among, op.iou_threshold, [&](int64_t k) {
      return (op.class_agnostic || kept_label[k] == label[candidate]) &&
             sorted.Overlap(candidate, kept, k, 0).AtLeast(op.iou_threshold);
    });
  }
  void Keep(int64_t candidate, int64_t number) const {
    SortedBoxes::Keep(candidate, number);
    kept_element[number] = element[candidate];
    kept_label[number] = label[candidate];
  }
  int64_t LayerOf(int64_t candidate) const { return op.class_agnostic ? 0 : label[candidate]; }
  int64_t LayerOfKept(int64_t number) const { return op.class_agnostic ? 0 : kept_label[number]; }
};

// Elements that are put in order and decoded together: few at first, as few may be needed.
constexpr int64_t kFirstElements = 128, kElements = 1024;

// Visits the elements of a picture in their order, at most `together` at a time; returns how many are kept. What cells
// hold is put there anew each time, so `together` may not be much less than what may be kept.
template <class T>
int64_t SuppressElements(const CodedBoxes<T>& boxes, int64_t picture, int64_t classes, LazyOrder* order,
                         const Elements& elements, int64_t together, const Context* context) {
  const int64_t most = elements.op.max_output_boxes;
  int64_t kept = 0, some = kFirstElements;
  for (int64_t rank = 0; rank < order->count() && kept < most; rank += some, some *= 2) {
    some = std::min({some, together, order->count() - rank});
    for (int64_t i = 0; i < some; ++i) {
      const int64_t element = order->Element(rank + i);
      float corners[4];
      boxes.Corners(picture, element / classes, element % classes, corners);
      CodedBoxes<T>::InOrder(corners);
      elements.sorted.Set(i, corners, 0);
      elements.element[i] = static_cast<int32_t>(element);
      elements.label[i] = static_cast<int32_t>(element % classes);
    }
    kept = SuppressGreedily(elements, some, most, context, 0, kept);
  }
  return kept;
}

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
  const int64_t together = std::min(elements, std::max(kElements, most)), capacity = together + most;
  const int64_t tasks = Context::NumTasks(pictures, 1), bytes = (SortedBoxes::BytesFor(capacity) + 63) / 64 * 64;
  const Scratch<Key> keys = context.Allocate<Key>(pictures * elements);
  const Scratch<int64_t> found = context.Allocate<int64_t>(pictures * blocks);
  const Scratch<char> memory = context.Allocate<char>(tasks * bytes);
  const Scratch<int32_t> numbers = context.Allocate<int32_t>(tasks * Elements::kNumbers * capacity);
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
    const Elements kept =
        Elements::In(memory.data() + task * bytes, numbers.data() + task * Elements::kNumbers * capacity, capacity, op);
    for (int64_t picture = first; picture < last; ++picture) {
      Key* const all = keys.data() + picture * elements;
      int64_t total = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t n = found[picture * blocks + b];
        std::copy_n(all + b * kBlock, n, all + total);
        total += n;
      }
      LazyOrder order(all, total);
      const int64_t rows =
          SuppressElements(coded, picture, classes, &order, kept, together, pictures == 1 ? &context : nullptr);
      num[picture] = static_cast<int32_t>(rows);
      for (int64_t k = 0; k < keep; ++k) {
        const int64_t row = picture * keep + k, element = k < rows ? kept.kept_element[k] : 0;
        float box[4] = {};
        if (k < rows) coded.Corners(picture, element / classes, kept.kept_label[k], box);
        for (int i = 0; i < 4; ++i) out_boxes[4 * row + i] = FromFloat<T>(box[i]);
        out_scores[row] = FromFloat<T>(k < rows ? Shown(op, scores[picture * elements + element]) : 0.0f);
        out_classes[row] = k < rows ? kept.kept_label[k] : 0;
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
