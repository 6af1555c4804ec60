// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "ops/boxes/soft_nms/soft_nms_rule.h"

namespace polyop {
namespace {

constexpr int kSoftNmsThreads = 1024;

struct Candidate {
  float score;
  int64_t box;  // -1: none
};

// Returns the candidate of the higher score, or the lower box among equal scores.
POLYOP_HD Candidate BetterOf(const Candidate& a, const Candidate& b) {
  if (a.box < 0 || b.box < 0) return a.box < 0 ? b : a;
  return b.score > a.score || (b.score == a.score && b.box < a.box) ? b : a;
}

struct Rule {
  SoftNms::Method method;
  float iou_threshold, sigma, offset;

  POLYOP_HD float Weight(const float* a, const float* b) const {
    const float width = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]) + offset;
    const float height = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]) + offset;
    const float least = LeastExtent(offset);
    if (!(width > least) || !(height > least)) return Weight(0);
    const float intersection = width * height, united = Area(a) + Area(b) - intersection;
    const float iou = intersection / united;
    return Weight(IouDoubt::Of(iou, united, iou_threshold) ? ExactIou(a, b, offset) : iou);
  }
  POLYOP_HD float Weight(float iou) const {
    if (method == SoftNms::Method::kGaussian) return std::exp(-(iou * iou / sigma));
    if (!(iou >= iou_threshold)) return 1;
    return method == SoftNms::Method::kLinear ? 1 - iou : 0;
  }
  POLYOP_HD float Area(const float* box) const { return (box[2] - box[0] + offset) * (box[3] - box[1] + offset); }
};

// Uses a single thread block, because each step depends on the previous one. Its threads lower all scores by the
// overlap with the selected box and find the best remaining one.
Status SoftNmsCuda(const SoftNms& op, const CudaContext& cuda, Tensor<const float, 2> boxes,
                   Tensor<const float, 1> scores, Pending<float, 2> dets, Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  Tensor<float, 2> out;
  Tensor<int64_t, 1> kept;
  int64_t *num_dets = nullptr, *num_kept = nullptr;
  POLYOP_RETURN_IF_ERROR(dets.AllocateUpperBound(count, &out, &num_dets));
  POLYOP_RETURN_IF_ERROR(keep.AllocateUpperBound(count, &kept, &num_kept));
  float* const remaining = cuda.Allocate<float>(count);
  const float *from = boxes.data(), *first_scores = scores.data();
  float* const to = out.data();
  int64_t* const indices = kept.data();
  const Rule rule{op.method, op.iou_threshold, op.sigma, static_cast<float>(op.offset)};
  const float min_score = op.min_score;
  constexpr int64_t kShared = kSoftNmsThreads * static_cast<int64_t>(sizeof(Candidate)) + 32;
  return ForBlocks<kSoftNmsThreads>(cuda, 1, kSoftNmsThreads, kShared, [=] POLYOP_DEVICE(Block& block) {
    Candidate* const best = block.Shared<Candidate>(kSoftNmsThreads);
    int64_t* const selected = block.Shared<int64_t>(1);
    // A score of NaN marks a removed box.
    block.ForThreads([&](int t) {
      best[t] = {0, -1};
      for (int64_t i = t; i < count; i += kSoftNmsThreads) {
        remaining[i] = first_scores[i];
        if (remaining[i] == remaining[i]) best[t] = BetterOf(best[t], {remaining[i], i});
      }
    });
    int64_t step = 0;
    for (;; ++step) {
      ReduceBlock(block, best, kSoftNmsThreads, BetterOf);
      block.ForThreads([&](int t) {
        if (t != 0) return;
        *selected = best[0].box;
        if (*selected < 0) return;
        for (int k = 0; k < 4; ++k) to[5 * step + k] = from[4 * *selected + k];
        to[5 * step + 4] = best[0].score;
        indices[step] = *selected;
        remaining[*selected] = NAN;
      });
      const int64_t box = *selected;
      if (box < 0) break;
      block.ForThreads([&](int t) {
        best[t] = {0, -1};
        for (int64_t i = t; i < count; i += kSoftNmsThreads) {
          if (remaining[i] != remaining[i]) continue;
          const float score = LoweredScore(remaining[i], rule.Weight(from + 4 * box, from + 4 * i));
          remaining[i] = score < min_score ? NAN : score;
          if (remaining[i] == remaining[i]) best[t] = BetterOf(best[t], {remaining[i], i});
        }
      });
    }
    block.ForThreads([&](int t) {
      if (t == 0) *num_dets = *num_kept = step;
    });
  });
}

POLYOP_CUDA_KERNEL(SoftNms, SoftNmsCuda);

}  // namespace
}  // namespace polyop
