#include <bit>

#include "core/order_keys.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device_sort.h"
#include "ops/argsort/argsort.h"

namespace polyop {
namespace {

// All rows are sorted together: by their elements, and by the row, which is in the key's high bits if it fits there.
template <class T>
Status ArgsortCuda(const Argsort& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x,
                   Tensor<int64_t, kAnyRank> order) {
  using Key = OrderKey<T>;
  constexpr int kBits = 8 * static_cast<int>(sizeof(Key));
  constexpr bool kRowFits = kBits == 32;
  const int64_t count = x.size(), length = x.dim(x.rank() - 1), rows = length == 0 ? 0 : count / length;
  const int row_bits = rows > 1 ? std::bit_width(static_cast<uint64_t>(rows - 1)) : 0;
  const Key flipped_bits = op.descending != 0 ? ~Key{0} : 0;
  const T* const from = x.data();
  int64_t* const to = order.data();
  SortPairs sort = SortPairs::Allocate(cuda, count);
  uint64_t* const keys = sort.keys;
  int32_t* const values = sort.values;
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    const auto row = static_cast<uint64_t>(kRowFits ? i / length : 0);
    keys[i] = row << (kBits % 64) | (OrderKeyOf(from[i]) ^ flipped_bits);
    values[i] = static_cast<int32_t>(i);
  }));
  POLYOP_RETURN_IF_ERROR(sort.Sort(cuda, kRowFits ? kBits + row_bits : kBits));
  if (!kRowFits && rows > 1) {
    uint64_t* const row_keys = sort.keys;
    const int32_t* const sorted = sort.values;
    POLYOP_RETURN_IF_ERROR(ForEach(
        cuda, count, [=] POLYOP_DEVICE(int64_t i) { row_keys[i] = static_cast<uint64_t>(sorted[i] / length); }));
    POLYOP_RETURN_IF_ERROR(sort.Sort(cuda, row_bits));
  }
  const int32_t* const sorted = sort.values;
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { to[i] = sorted[i] % length; });
}

POLYOP_CUDA_KERNELS(Argsort, ArgsortCuda, float, double, Half, BFloat16, int32_t, int64_t);

}  // namespace
}  // namespace polyop
