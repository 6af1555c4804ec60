#include <bit>

#include "families/sparse/gathered_product_cuda.h"
#include "families/sparse/sparse_values.h"
#include "kernels/cuda/device_sort.h"
#include "ops/indice_conv/indice_conv.h"

namespace polyop {
namespace {

// Pairs sorted by output, then by offset: an output's lie one behind the other.
struct SortedPairs {
  using State = int64_t;  // the first pair of the offsets to come
  const uint64_t* keys;
  const int32_t* rows;
  int64_t count, offsets;

  POLYOP_HD int64_t Start(int64_t o) const {
    const auto key = static_cast<uint64_t>(o * offsets);
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (keys[middle] < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  POLYOP_HD EntryRange Find(int64_t& at, int64_t o, int64_t f) const {
    const auto key = static_cast<uint64_t>(o * offsets + f);
    const int64_t begin = at;
    while (at < count && keys[at] == key) ++at;
    return {begin, at};
  }
  POLYOP_HD int64_t RowOf(int64_t entry) const { return rows[entry]; }
};

// A count out of range gives none of its pairs, a row out of range takes its pair away; both are errors on the CPU, as
// is a num_act_out out of range, of which the nearest is taken.
template <class T, class I>
Status IndiceConvCuda(const IndiceConv& op, const CudaContext& cuda, Tensor<const T, 2> features,
                      Tensor<const T, 5> filters, Tensor<const I, 3> indice_pairs, Tensor<const I, 1> counts,
                      Tensor<const I, 0> num_act_out, Pending<T, 2> pending) {
  const PairLists<I> lists{indice_pairs.data(), counts.data(), counts.dim(0), indice_pairs.dim(2), op.is_subm};
  const int64_t most = pending.most(), rows = features.dim(0), offsets = lists.offsets, columns = lists.columns;
  Tensor<T, 2> out;
  int64_t* count = nullptr;
  POLYOP_RETURN_IF_ERROR(pending.AllocateMost(most, &out, &count));
  const I* const wanted = num_act_out.data();
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) {
    const int64_t outputs = *wanted;
    *count = outputs < 0 ? 0 : outputs > most ? most : outputs;
  }));
  const int64_t listed = offsets * columns, own = op.is_subm && offsets > 0 ? rows : 0;
  const auto none = static_cast<uint64_t>(most * offsets);
  SortPairs sorted = SortPairs::Allocate(cuda, listed + own);
  const Divider by_columns(columns);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, listed + own, [=] POLYOP_DEVICE(int64_t i) {
    int64_t in = i - listed, o = in, f = offsets / 2;
    bool taken = true;
    if (i < listed) {
      int64_t j;
      f = by_columns.Split(i, &j);
      in = lists.Input(f, j);
      o = lists.Output(f, j);
      taken = !lists.IsCentre(f) && lists.Count(f) <= columns && j < lists.Count(f);
    }
    taken = taken && in >= 0 && in < rows && o >= 0 && o < *count;
    sorted.keys[i] = taken ? static_cast<uint64_t>(o * offsets + f) : none;
    sorted.values[i] = taken ? static_cast<int32_t>(in) : -1;
  }));
  POLYOP_RETURN_IF_ERROR(sorted.Sort(cuda, std::bit_width(none)));
  const SortedPairs pairs{sorted.keys, sorted.values, sorted.count, offsets};
  const GatheredFactors<T> factors{features.data(), features.dim(1),  filters.data(), offsets, out.dim(1),
                                   nullptr,         ActivationRule{}, most,           count,   out.data()};
  return GatheredProductCuda(cuda, factors, pairs);
}

POLYOP_CUDA_KERNEL(IndiceConv, IndiceConvCudaF32I32, IndiceConvCuda<float, int32_t>);
POLYOP_CUDA_KERNEL(IndiceConv, IndiceConvCudaF16I32, IndiceConvCuda<Half, int32_t>);
POLYOP_CUDA_KERNEL(IndiceConv, IndiceConvCudaBF16I32, IndiceConvCuda<BFloat16, int32_t>);
POLYOP_CUDA_KERNEL(IndiceConv, IndiceConvCudaF32I64, IndiceConvCuda<float, int64_t>);
POLYOP_CUDA_KERNEL(IndiceConv, IndiceConvCudaF16I64, IndiceConvCuda<Half, int64_t>);
POLYOP_CUDA_KERNEL(IndiceConv, IndiceConvCudaBF16I64, IndiceConvCuda<BFloat16, int64_t>);

}  // namespace
}  // namespace polyop
