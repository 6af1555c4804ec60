#include <cstring>

#include "kernels/cpu/check_indices.h"
#include "ops/gather_topk/gather_topk.h"

namespace polyop {
namespace {

// Plain copies: there is nothing to compute, so the file is compiled once, for every processor.

// The call with its element type erased.
template <class I>
struct Gather {
  const char* data;
  const I* indices;
  char* gathered;
  int64_t num_rows, num_picks, row_bytes;  // rows and picks of one batch entry

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

#define POLYOP_GATHER_TOPK(T, NAME)                                                               \
  POLYOP_KERNEL(GatherTopk, Device::kCpu, GatherTopk##NAME##I32R1, GatherTopkCpu<T, int32_t, 1>); \
  POLYOP_KERNEL(GatherTopk, Device::kCpu, GatherTopk##NAME##I64R1, GatherTopkCpu<T, int64_t, 1>); \
  POLYOP_KERNEL(GatherTopk, Device::kCpu, GatherTopk##NAME##I32R2, GatherTopkCpu<T, int32_t, 2>); \
  POLYOP_KERNEL(GatherTopk, Device::kCpu, GatherTopk##NAME##I64R2, GatherTopkCpu<T, int64_t, 2>); \
  POLYOP_KERNEL(GatherTopk, Device::kCpu, GatherTopk##NAME##I32R3, GatherTopkCpu<T, int32_t, 3>); \
  POLYOP_KERNEL(GatherTopk, Device::kCpu, GatherTopk##NAME##I64R3, GatherTopkCpu<T, int64_t, 3>)
POLYOP_GATHER_TOPK(float, F32);
POLYOP_GATHER_TOPK(Half, F16);
POLYOP_GATHER_TOPK(BFloat16, BF16);
POLYOP_GATHER_TOPK(int32_t, I32);
POLYOP_GATHER_TOPK(int64_t, I64);
POLYOP_GATHER_TOPK(uint8_t, U8);
POLYOP_GATHER_TOPK(bool, Bool);
#undef POLYOP_GATHER_TOPK

}  // namespace
}  // namespace polyop
