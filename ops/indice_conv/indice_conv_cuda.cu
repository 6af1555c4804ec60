#include <bit>

#include "families/sparse/gathered_product_cuda.h"
#include "families/sparse/sparse_values.h"
#include "kernels/cuda/device_sort.h"
#include "ops/indice_conv/indice_conv.h"

namespace polyop {
namespace {

// Pairs sorted by output, then by offset, so that the pairs of an output are consecutive.
struct SortedPairs {
  using State = int64_t;  // the first pair of the remaining offsets
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
  const int64_t listed = offsets * columns, centre_pairs = op.is_subm && offsets > 0 ? rows : 0;
  const auto none = static_cast<uint64_t>(max_outputs * offsets);
  SortPairs sorted = SortPairs::Allocate(cuda, listed + centre_pairs);
  const Divider by_columns(columns);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, listed + centre_pairs, [=] POLYOP_DEVICE(int64_t i) {
    int64_t in = i - listed, o = in, f = offsets / 2;
    bool valid = true;
    if (i < listed) {
      int64_t j;
      f = by_columns.Split(i, &j);
      in = lists.Input(f, j);
      o = lists.Output(f, j);
      valid = !lists.IsCentre(f) && lists.Count(f) <= columns && j < lists.Count(f);
    }
    valid = valid && in >= 0 && in < rows && o >= 0 && o < *count;
    sorted.keys[i] = valid ? static_cast<uint64_t>(o * offsets + f) : none;
    sorted.values[i] = valid ? static_cast<int32_t>(in) : -1;
  }));
  POLYOP_RETURN_IF_ERROR(sorted.Sort(cuda, std::bit_width(none)));
  const SortedPairs pairs{sorted.keys, sorted.values, sorted.count, offsets};
  const GatheredFactors<T> factors{features.data(), features.dim(1),  filters.data(), offsets, out.dim(1),
                                   nullptr,         ActivationRule{}, max_outputs,    count,   out.data()};
  return GatheredProductCuda(cuda, factors, pairs);
}

POLYOP_CUDA_KERNELS(IndiceConv, IndiceConvCuda, (float, int32_t), (Half, int32_t), (BFloat16, int32_t),
                    (float, int64_t), (Half, int64_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
