#include "kernels/cuda/cuda.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/decode_bbox3d/anchor_boxes.h"
#include "ops/decode_bbox3d/decode_bbox3d.h"

namespace polyop {
namespace {

// A bit for each anchor tells whether it is kept; then each writes one row: its own, or one of 0 behind those kept.
template <class T>
Status DecodeBbox3dCuda(const DecodeBbox3d& op, const CudaContext& cuda, Tensor<const T, 4> cls, Tensor<const T, 4> box,
                        Tensor<const T, 4> dir, Tensor<T, 3> boxes, Tensor<int32_t, 1> num) {
  constexpr int64_t kBits = 32;  // of each word: more words keep more threads busy
  const int64_t pictures = boxes.dim(0), count = boxes.dim(1), classes = cls.dim(3) / op.num_anchors();
  const int64_t words = (count + kBits - 1) / kBits;
  uint64_t* const kept = cuda.Allocate<uint64_t>(pictures * words);
  int64_t* const before = cuda.Allocate<int64_t>(pictures * words + 1);
  const float least = op.LeastScore();
  const T *const logits = cls.data(), *const offsets = box.data(), *const directions = dir.data();
  const Divider by_words(words), by_count(count);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, pictures * words, [=] POLYOP_DEVICE(int64_t i) {
    int64_t word;
    const int64_t picture = by_words.Split(i, &word), begin = word * kBits;
    uint64_t bits = 0;
    for (int64_t a = begin; a < begin + kBits && a < count; ++a) {
      const bool stays = BestClass(logits + (picture * count + a) * classes, classes, least) >= 0;
      bits |= static_cast<uint64_t>(stays) << (a - begin);
    }
    kept[i] = bits;
  }));
  POLYOP_RETURN_IF_ERROR(PrefixSums(
      cuda, pictures * words, [=] POLYOP_HD(int64_t i) { return static_cast<int64_t>(PopCount(kept[i])); }, before,
      before + pictures * words));
  int32_t* const to_num = num.data();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, pictures, [=] POLYOP_DEVICE(int64_t picture) {
    to_num[picture] = static_cast<int32_t>(before[(picture + 1) * words] - before[picture * words]);
  }));
  const AnchorBoxes anchors(op, cls.dim(1), cls.dim(2));
  T* const to = boxes.data();
  return ForEach(cuda, pictures * count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t number;
    const int64_t picture = by_count.Split(i, &number), word = picture * words + number / kBits;
    const uint64_t bit = uint64_t{1} << (number % kBits);
    const int64_t rank = before[word] - before[picture * words] + PopCount(kept[word] & (bit - 1));
    if ((kept[word] & bit) != 0) {
      const int32_t label = BestClass(logits + i * classes, classes, least);
      anchors.Decode(number, offsets + 7 * i, directions + 2 * i, label, ToFloat(logits[i * classes + label]),
                     to + 9 * (picture * count + rank));
      return;
    }
    T* const row = to + 9 * (picture * count + to_num[picture] + number - rank);
    for (int k = 0; k < 9; ++k) row[k] = FromFloat<T>(0);
  });
}

POLYOP_CUDA_KERNEL(DecodeBbox3d, DecodeBbox3dF32, DecodeBbox3dCuda<float>);
POLYOP_CUDA_KERNEL(DecodeBbox3d, DecodeBbox3dF16, DecodeBbox3dCuda<Half>);
POLYOP_CUDA_KERNEL(DecodeBbox3d, DecodeBbox3dBF16, DecodeBbox3dCuda<BFloat16>);

}  // namespace
}  // namespace polyop
