// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/items_by_target.h"
#include "ops/points/assign_score_withk/assign_score_withk_backward.h"

namespace polyop {
namespace {

// The inputs. A pair is a neighbour of a query: [batches, queries, neighbours].
template <class T, class I>
struct ScoredPairs {
  const T *grads, *scores, *point_features, *center_features;
  const I* index;
  int64_t matrices, points, size;
  Divider by_batch, by_neighbour;  // the pairs of a batch element, and those of a query

  // Returns a point's index across all batch elements, or -1.
  POLYOP_HD int64_t PointAt(int64_t pair) const {
    const int64_t point = index[pair];
    return point >= 0 && point < points ? by_batch.Quotient(pair) * points + point : -1;
  }
  POLYOP_HD int64_t CenterOf(int64_t query) const { return PointAt(query * by_neighbour.divisor()); }
  // Returns the point of a pair that has a centre, or -1.
  POLYOP_HD int64_t PointOf(int64_t pair) const {
    return CenterOf(by_neighbour.Quotient(pair)) >= 0 ? PointAt(pair) : -1;
  }
  POLYOP_HD float Grad(int64_t pair, int64_t o) const {
    int64_t in_batch;
    const int64_t b = by_batch.Split(pair, &in_batch);
    return ToFloat(grads[(b * size + o) * by_batch.divisor() + in_batch]);
  }
  // Returns the gradient times the score. A score of 0 adds nothing.
  POLYOP_HD float Scored(int64_t pair, int64_t m, int64_t o) const {
    const float score = ToFloat(scores[pair * matrices + m]);
    return score == 0 ? 0 : score * Grad(pair, o);
  }
};

// Each thread computes the gradient of one score.
template <class T, class I>
Status ScoreGradientCuda(const CudaContext& cuda, const ScoredPairs<T, I>& of, const Tensor<T, 4>& grad_scores) {
  T* const to = grad_scores.data();
  const Divider by_matrices(of.matrices);
  return ForEach(cuda, grad_scores.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t m;
    const int64_t pair = by_matrices.Split(i, &m), point = of.PointOf(pair);
    float sum = 0;
    if (point >= 0) {
      const int64_t center = of.CenterOf(of.by_neighbour.Quotient(pair));
      const T* const from = of.point_features + (point * of.matrices + m) * of.size;
      const T* const base = of.center_features + (center * of.matrices + m) * of.size;
      for (int64_t o = 0; o < of.size; ++o) sum += of.Grad(pair, o) * (ToFloat(from[o]) - ToFloat(base[o]));
    }
    to[i] = FromFloat<T>(sum);
  });
}

// Each thread sums the gradients of one feature of a point over the pairs of the point; or, negative, over the pairs of
// the queries whose centre is the point. An item is a pair or a query.
template <class T, class I>
Status FeatureGradientCuda(const CudaContext& cuda, const ScoredPairs<T, I>& of, bool of_centers, int64_t items,
                           const Tensor<T, 4>& grad_features) {
  if (grad_features.size() == 0) return cuda.Check();
  T* const to = grad_features.data();
  const int64_t each = of_centers ? of.by_neighbour.divisor() : 1;
  ItemsByTargetCuda groups;
  POLYOP_RETURN_IF_ERROR(ItemsByTargetCuda::Group(
      cuda, items, grad_features.dim(0) * of.points,
      [=] POLYOP_DEVICE(int64_t item) { return of_centers ? of.CenterOf(item) : of.PointOf(item); }, &groups));
  const Divider by_size(of.size), by_matrices(of.matrices);
  return ForEach(cuda, grad_features.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t o, m;
    const int64_t point = by_matrices.Split(by_size.Split(i, &o), &m);
    float sum = 0;
    for (int64_t k = groups.begins[point]; k < groups.begins[point + 1]; ++k) {
      const int64_t first = groups.items[k] * each;
      for (int64_t pair = first; pair < first + each; ++pair) {
        if (of.PointAt(pair) >= 0) sum += of.Scored(pair, m, o);
      }
    }
    to[i] = FromFloat<T>(of_centers ? -sum : sum);
  });
}

template <class T, class I>
Status AssignScoreWithkBackwardCuda(const AssignScoreWithkBackward&, const CudaContext& cuda,
                                    Tensor<const T, 4> grad_output, Tensor<const T, 4> scores,
                                    Tensor<const T, 4> point_features, Tensor<const T, 4> center_features,
                                    Tensor<const I, 3> knn_idx, std::optional<Tensor<T, 4>> grad_scores,
                                    std::optional<Tensor<T, 4>> grad_points, std::optional<Tensor<T, 4>> grad_centers) {
  const int64_t queries = scores.dim(1), neighbours = scores.dim(2);
  const ScoredPairs<T, I> of{grad_output.data(),     scores.data(),         point_features.data(),
                             center_features.data(), knn_idx.data(),        scores.dim(3),
                             point_features.dim(1),  point_features.dim(3), Divider(queries * neighbours),
                             Divider(neighbours)};
  if (grad_scores) POLYOP_RETURN_IF_ERROR(ScoreGradientCuda<T>(cuda, of, *grad_scores));
  if (grad_points) POLYOP_RETURN_IF_ERROR(FeatureGradientCuda<T>(cuda, of, false, knn_idx.size(), *grad_points));
  if (!grad_centers) return Status::Ok();
  // Without neighbours, a query has no centre.
  return FeatureGradientCuda<T>(cuda, of, true, neighbours > 0 ? scores.dim(0) * queries : 0, *grad_centers);
}

POLYOP_CUDA_KERNELS(AssignScoreWithkBackward, AssignScoreWithkBackwardCuda, (float, int32_t), (float, int64_t),
                    (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
