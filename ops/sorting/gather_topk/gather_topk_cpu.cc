// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/cpu/check_indices.h"
#include "ops/sorting/gather_topk/gather_topk.h"

namespace polyop {
namespace {

// The kernel only copies, so this file is compiled once and not for every instruction set.

// A call without its element type.
template <class I>
struct Gather {
  const char* data;
  const I* indices;
  char* gathered;
  int64_t num_rows, num_picks, row_bytes;  // rows and indices per batch element

  template <int64_t kBytes>
  void CopyRows(int64_t begin, int64_t end) const {
    const int64_t bytes = kBytes > 0 ? kBytes : row_bytes;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / num_picks * num_rows + indices[i];
      std::memcpy(gathered + i * bytes, data + row * bytes, static_cast<size_t>(bytes));
    }
  }

  void Copy(int64_t begin, int64_t end) const {
    switch (row_bytes) {
      case 1: return CopyRows<1>(begin, end);
      case 2: return CopyRows<2>(begin, end);
      case 4: return CopyRows<4>(begin, end);
      case 8: return CopyRows<8>(begin, end);
      case 16: return CopyRows<16>(begin, end);
      default: return CopyRows<0>(begin, end);
    }
  }
};

template <class T, class I, int kRank>
Status GatherTopkCpu(const GatherTopk&, const Context& context, Tensor<const T, kAnyRank> data,
                     Tensor<const I, kRank> indices, Tensor<T, kAnyRank> gathered) {
  Gather<I> gather;
  gather.data = reinterpret_cast<const char*>(data.data());
  gather.indices = indices.data();
  gather.gathered = reinterpret_cast<char*>(gathered.data());
  gather.num_rows = data.dim(kRank - 1);
  gather.num_picks = indices.dim(kRank - 1);
  gather.row_bytes = sizeof(T);
  for (int d = kRank; d < data.rank(); ++d) gather.row_bytes *= data.dim(d);
  POLYOP_RETURN_IF_ERROR(
      CheckIndices(context, "indices", indices.data(), indices.size(), gather.num_rows, "a row of 'data'"));
  const double nanoseconds = 2.0 + static_cast<double>(gather.row_bytes) * 0.1;
  context.ParallelFor(indices.size(), GrainFor(nanoseconds),
                      [&](int64_t begin, int64_t end) { gather.Copy(begin, end); });
  return Status::Ok();
}

// All index types and ranks of one data type.
#define POLYOP_INDEXED(T) \
  (T, int32_t, 1), (T, int64_t, 1), (T, int32_t, 2), (T, int64_t, 2), (T, int32_t, 3), (T, int64_t, 3)
POLYOP_PLAIN_CPU_KERNELS(GatherTopk, GatherTopkCpu, POLYOP_INDEXED(float), POLYOP_INDEXED(Half),
                         POLYOP_INDEXED(BFloat16), POLYOP_INDEXED(int32_t), POLYOP_INDEXED(int64_t),
                         POLYOP_INDEXED(uint8_t), POLYOP_INDEXED(bool));
#undef POLYOP_INDEXED

}  // namespace
}  // namespace polyop
