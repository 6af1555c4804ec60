#include "families/neighbours/nearest_cuda.h"
#include "ops/three_nn/three_nn.h"

namespace polyop {
namespace {

template <class T>
struct ThreeNnSearch {
  using State = NearestState;

  const T* target;
  BatchRanges batches;
  NearestLists lists;
  T* dist;
  int32_t* idx;

  POLYOP_HD PointRange Start(int64_t q, State& state) const {
    const PointRange range = batches.Of(q);
    state.Start(lists, q, target + 3 * q, range.begin);
    return range;
  }
  POLYOP_HD void Offer(State& state, const float* point, int64_t row) const { state.Offer(point, row, 3); }
  POLYOP_HD void Finish(State& state, int64_t q) const { WriteNearest(*this, state.nearest, q); }
  POLYOP_HD void Write(int64_t q, int64_t k, bool has, double squared, int32_t index) const {
    dist[3 * q + k] = FromFloat<T>(has ? static_cast<float>(std::sqrt(squared)) : INFINITY);
    idx[3 * q + k] = has ? index : 0;
  }
};

template <class T>
Status ThreeNNCuda(const ThreeNN&, const CudaContext& cuda, Tensor<const T, 3> target, Tensor<const T, 3> source,
                   Tensor<T, 3> dist, Tensor<int32_t, 3> idx) {
  const int64_t queries = target.dim(0) * target.dim(1);
  return SearchNearest(cuda, source.data(), source.dim(0) * source.dim(1), queries,
                       ThreeNnSearch<T>{target.data(), BatchRanges(source.dim(1), target.dim(1)),
                                        NearestLists::InMemory(cuda, queries, 3), dist.data(), idx.data()});
}

POLYOP_CUDA_KERNELS(ThreeNN, ThreeNNCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
