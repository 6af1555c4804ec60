// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/gathered_product_cuda.h"
#include "ops/sparse/indice_conv/indice_conv.h"
#include "ops/sparse/indice_conv/listed_pairs_cuda.h"
#include "ops/sparse/sorted_pairs_cuda.h"

namespace polyop {
namespace {

// Ignores the pairs of a count out of range and pairs with a row out of range, and clamps num_act_out to its range. All
// of these are errors on the CPU.
template <class T, class I>
Status IndiceConvCuda(const IndiceConv& op, const CudaContext& cuda, Tensor<const T, 2> features,
                      Tensor<const T, 5> filters, Tensor<const I, 3> indice_pairs, Tensor<const I, 1> counts,
                      Tensor<const I, 0> num_act_out, Pending<T, 2> pending) {
  const PairLists<I> lists{indice_pairs.data(), counts.data(), counts.dim(0), indice_pairs.dim(2), op.is_subm};
  const int64_t max_outputs = pending.max(), rows = features.dim(0), offsets = lists.offsets, columns = lists.columns;
  Tensor<T, 2> out;
  int64_t* count = nullptr;
  POLYOP_RETURN_IF_ERROR(pending.AllocateUpperBound(max_outputs, &out, &count));
  const I* const requested = num_act_out.data();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) {
    const int64_t outputs = *requested;
    *count = outputs < 0 ? 0 : outputs > max_outputs ? max_outputs : outputs;
  }));
  const ListedPairs<I> listed{lists, op.is_subm && offsets > 0 ? rows : 0, Divider(columns)};
  SortedPairs pairs;
  POLYOP_RETURN_IF_ERROR(SortedPairs::Sort(
      cuda, listed.count(), max_outputs, offsets,
      [=] POLYOP_DEVICE(int64_t i) {
        const SparsePairAt pair = listed.At(i);
        const bool valid = pair.input >= 0 && pair.input < rows && pair.output >= 0 && pair.output < *count;
        return valid ? SortedPairs::Entry{pair.output, pair.offset, static_cast<int32_t>(pair.input)}
                     : SortedPairs::None();
      },
      &pairs));
  const int64_t channels = features.dim(1);
  const GatheredFactors<T> factors{
      features.data(), rows,       channels, filters.data(),   FilterStrides::Of(offsets, channels),
      offsets,         out.dim(1), nullptr,  ActivationRule{}, max_outputs,
      count,           out.data()};
  return GatheredProductCuda<false>(cuda, factors, pairs);
}

POLYOP_CUDA_KERNELS(IndiceConv, IndiceConvCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
