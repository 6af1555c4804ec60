// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/boxes3d/decode_bbox3d/anchor_boxes.h"
#include "ops/boxes3d/decode_bbox3d/decode_bbox3d.h"

namespace polyop {
namespace {

// Marks kept anchors with one bit each. Then each anchor writes one row: its box if it is kept, else a row of zeros
// after the kept ones.
template <class T>
Status DecodeBbox3dCuda(const DecodeBbox3d& op, const CudaContext& cuda, Tensor<const T, 4> cls, Tensor<const T, 4> box,
                        Tensor<const T, 4> dir, Tensor<T, 3> boxes, Tensor<int32_t, 1> num) {
  constexpr int64_t kBits = 32;  // used bits per word; fewer bits occupy more threads
  const int64_t images = boxes.dim(0), count = boxes.dim(1), classes = cls.dim(3) / op.num_anchors();
  const int64_t words = (count + kBits - 1) / kBits;
  uint64_t* const kept = cuda.Allocate<uint64_t>(images * words);
  int64_t* const before = cuda.Allocate<int64_t>(images * words + 1);
  const float min_logit = op.MinScore();
  const T *const logits = cls.data(), *const offsets = box.data(), *const directions = dir.data();
  const Divider by_words(words), by_count(count);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, images * words, [=] POLYOP_DEVICE(int64_t i) {
    int64_t word;
    const int64_t image = by_words.Split(i, &word), begin = word * kBits;
    uint64_t bits = 0;
    for (int64_t a = begin; a < begin + kBits && a < count; ++a) {
      const bool is_kept = BestClass(logits + (image * count + a) * classes, classes, min_logit) >= 0;
      bits |= static_cast<uint64_t>(is_kept) << (a - begin);
    }
    kept[i] = bits;
  }));
  POLYOP_RETURN_IF_ERROR(PrefixSums(
      cuda, images * words, [=] POLYOP_DEVICE(int64_t i) { return static_cast<int64_t>(PopCount(kept[i])); }, before,
      before + images * words));
  int32_t* const to_num = num.data();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, images, [=] POLYOP_DEVICE(int64_t image) {
    to_num[image] = static_cast<int32_t>(before[(image + 1) * words] - before[image * words]);
  }));
  const AnchorBoxes anchors(op, cls.dim(1), cls.dim(2));
  T* const to = boxes.data();
  return ForEach(cuda, images * count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t number;
    const int64_t image = by_count.Split(i, &number), word = image * words + number / kBits;
    const uint64_t bit = uint64_t{1} << (number % kBits);
    const int64_t rank = before[word] - before[image * words] + PopCount(kept[word] & (bit - 1));
    if ((kept[word] & bit) != 0) {
      const int32_t label = BestClass(logits + i * classes, classes, min_logit);
      anchors.Decode(number, offsets + 7 * i, directions + 2 * i, label, ToFloat(logits[i * classes + label]),
                     to + 9 * (image * count + rank));
      return;
    }
    T* const row = to + 9 * (image * count + to_num[image] + number - rank);
    for (int k = 0; k < 9; ++k) row[k] = FromFloat<T>(0);
  });
}

POLYOP_CUDA_KERNELS(DecodeBbox3d, DecodeBbox3dCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
