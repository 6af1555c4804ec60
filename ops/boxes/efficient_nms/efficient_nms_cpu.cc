// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/item_groups.h"
#include "ops/boxes/efficient_nms/coded_boxes.h"
#include "ops/boxes/efficient_nms/efficient_nms.h"
#include "ops/boxes/score_order.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/efficient_nms/efficient_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 1 << 14;  // elements whose scores a task compares

// DescendingKeyOf() of an element. Element number = box * classes + class.
using Key = uint64_t;

// Writes the keys of the elements of scores[begin, end) that reach the threshold and are not background. Returns their
// number.
template <class T>
int64_t CollectKeys(const T* scores, int64_t begin, int64_t end, int64_t classes, int64_t background, float min_score,
                    Key* keys) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bound = hn::Set(d, min_score);
  int64_t found = 0;
  for (int64_t i = begin; i < end; i += lanes) {
    const int64_t width = std::min(lanes, end - i);
    const auto score = LoadFloatN(d, scores + i, static_cast<size_t>(width));
    VisitLanes(d, hn::Ge(score, bound), width, [&](int64_t lane) {
      const int64_t element = i + lane;
      if (background < 0 || element % classes != background) {
        keys[found++] = DescendingKeyOf(ToFloat(scores[element]), element);
      }
      return false;
    });
  }
  return found;
}

// Keys in ascending order, sorted only as far as they are requested.
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

// A chunk of elements in score order with their classes, and the elements kept so far.
struct Elements : SortedBoxes {
  static constexpr double kNanosecondsPerPair = 0.3;
  const EfficientNms& op;
  int32_t *element, *label, *kept_element, *kept_label;

  static constexpr int64_t kNumbers = 4;  // int32 values per box
  static Elements In(void* memory, int32_t* numbers, int64_t capacity, const EfficientNms& op) {
    return {SortedBoxes::In(memory, capacity, 0),
            op,
            numbers,
            numbers + capacity,
            numbers + 2 * capacity,
            numbers + 3 * capacity};
  }
  bool Overlaps(int64_t candidate, const KeptSubset& among) const {
    return AnySuspectIn<false>(candidate, among, op.iou_threshold, [&](int64_t k) {
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

// Number of elements that are sorted and decoded together; few at first, because few may be needed.
constexpr int64_t kFirstElements = 128, kElements = 1024;

// Visits the elements of an image in score order, at most `together` at a time. Returns the number of kept
// elements. The cells of the grid are filled again for each chunk, so `together` should not be much less than the
// maximum number of kept elements.
template <class T>
int64_t SuppressElements(const CodedBoxes<T>& boxes, int64_t image, int64_t classes, LazyOrder* order,
                         const Elements& elements, int64_t together, const Context* context) {
  const int64_t max_kept = elements.op.max_output_boxes;
  int64_t kept = 0, chunk = kFirstElements;
  for (int64_t rank = 0; rank < order->count() && kept < max_kept; rank += chunk, chunk *= 2) {
    chunk = std::min({chunk, together, order->count() - rank});
    for (int64_t i = 0; i < chunk; ++i) {
      const int64_t element = order->Element(rank + i);
      float corners[4];
      boxes.Corners(image, element / classes, element % classes, corners);
      CodedBoxes<T>::InOrder(corners);
      elements.sorted.Set(i, corners, 0);
      elements.element[i] = static_cast<int32_t>(element);
      elements.label[i] = static_cast<int32_t>(element % classes);
    }
    kept = SuppressGreedily(elements, chunk, max_kept, context, 0, kept);
  }
  return kept;
}

template <class T>
float OutputScore(const EfficientNms& op, T score) {
  const float s = ToFloat(score);
  return op.score_activation ? static_cast<float>(1 / (1 + std::exp(-static_cast<double>(s)))) : s;
}

template <class T>
Status Suppress(const EfficientNms& op, const Context& context, const T* boxes, int64_t box_classes,
                Tensor<const T, 3> scores, std::optional<Tensor<const T, 3>> anchors, Tensor<int32_t, 2> num,
                Tensor<T, 3> out_boxes, Tensor<T, 2> out_scores, Tensor<int32_t, 2> out_classes,
                std::optional<Tensor<int32_t, 2>> out_indices) {
  const int64_t images = scores.dim(0), count = scores.dim(1), classes = count == 0 ? 0 : scores.dim(2);
  const int64_t elements = count * classes, keep = op.max_output_boxes, max_kept = std::min(keep, elements);
  const CodedBoxes<T> coded{
      boxes,       anchors ? anchors->data() : nullptr, count,
      box_classes, anchors && anchors->dim(0) == 1,     op.box_coding == EfficientNms::Coding::kCenterSize};
  const int64_t blocks = (elements + kBlock - 1) / kBlock;
  const int64_t together = std::min(elements, std::max(kElements, max_kept)), capacity = together + max_kept;
  const ItemGroups groups(images, static_cast<double>(elements) * sizeof(Key));
  const int64_t bytes = (SortedBoxes::BytesFor(capacity) + 63) / 64 * 64;
  const int64_t number_bytes = Elements::kNumbers * capacity * static_cast<int64_t>(sizeof(int32_t));
  const Scratch<Key> keys = context.Allocate<Key>(groups.at_once() * elements);
  const Scratch<int64_t> found = context.Allocate<int64_t>(groups.at_once() * blocks);
  const float min_score = op.MinScore();
  const auto out_of_memory = [&] {
    return Internal("out of memory: scratch for 'scores' of shape ", ToString(scores.shape()));
  };
  if (!keys || !found) return out_of_memory();
  bool fits = true;
  groups.ForEach([&](int64_t from, int64_t some) {
    context.ParallelFor(some * blocks, 2, [&](int64_t first, int64_t last) HWY_ATTR {
      for (int64_t i = first; i < last; ++i) {
        const int64_t slot = i / blocks, begin = i % blocks * kBlock, end = std::min(elements, begin + kBlock);
        found[i] = CollectKeys(scores.data() + (from + slot) * elements, begin, end, classes, op.background_class,
                               min_score, keys.data() + slot * elements + begin);
      }
    });
    const auto suppress = [&](char* memory, int64_t first, int64_t last) HWY_ATTR {
      const Elements kept = Elements::In(memory, reinterpret_cast<int32_t*>(memory + bytes), capacity, op);
      for (int64_t slot = first; slot < last; ++slot) {
        const int64_t image = from + slot;
        Key* const all = keys.data() + slot * elements;
        int64_t total = 0;
        for (int64_t b = 0; b < blocks; ++b) {
          const int64_t n = found[slot * blocks + b];
          std::copy_n(all + b * kBlock, n, all + total);
          total += n;
        }
        LazyOrder order(all, total);
        const int64_t rows =
            SuppressElements(coded, image, classes, &order, kept, together, some == 1 ? &context : nullptr);
        num[image] = static_cast<int32_t>(rows);
        for (int64_t k = 0; k < keep; ++k) {
          const int64_t row = image * keep + k, element = k < rows ? kept.kept_element[k] : 0;
          float box[4] = {};
          if (k < rows) coded.Corners(image, element / classes, kept.kept_label[k], box);
          for (int i = 0; i < 4; ++i) out_boxes[4 * row + i] = FromFloat<T>(box[i]);
          out_scores[row] = FromFloat<T>(k < rows ? OutputScore(op, scores[image * elements + element]) : 0.0f);
          out_classes[row] = k < rows ? kept.kept_label[k] : 0;
          if (out_indices) (*out_indices)[row] = k < rows ? static_cast<int32_t>(element / classes) : 0;
        }
      }
    };
    fits = fits && context.ParallelForWithScratch<char>(some, 1, bytes + number_bytes, suppress);
  });
  return fits ? Status::Ok() : out_of_memory();
}

// boxes [N, B, 4]: one row for all classes. EfficientNmsCpu4 takes [N, B, 1 or C, 4].
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
POLYOP_CPU_KERNELS(EfficientNms, EfficientNmsCpu3, float, Half, BFloat16);
POLYOP_CPU_KERNELS(EfficientNms, EfficientNmsCpu4, float, Half, BFloat16);
}  // namespace polyop
#endif
