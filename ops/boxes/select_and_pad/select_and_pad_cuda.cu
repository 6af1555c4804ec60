// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/boxes/select_and_pad/select_and_pad.h"

namespace polyop {
namespace {

template <class T, class I>
Status SelectAndPadCuda(const SelectAndPad&, const CudaContext& cuda, Tensor<const T, 3> feat, Tensor<const I, 1> flags,
                        Tensor<const T, 1> invalid, Tensor<T, 3> selected) {
  using Word = WordOf<T>;
  const int64_t of_batch = feat.dim(1), rows = selected.dim(1), channels = feat.dim(2);
  const I* const flag = flags.data();
  int64_t* const before = cuda.Allocate<int64_t>(of_batch + 1);
  int64_t* const selected_rows = cuda.Allocate<int64_t>(rows);
  POLYOP_RETURN_IF_ERROR(
      TiledPrefixSums(cuda, of_batch, [=] POLYOP_DEVICE(int64_t q) { return int64_t{flag[q] != 0}; }, before));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, of_batch, [=] POLYOP_DEVICE(int64_t q) {
    if (flag[q] != 0 && before[q] < rows) selected_rows[before[q]] = q;
  }));
  const auto* const from = reinterpret_cast<const Word*>(feat.data());
  const auto* const fill = reinterpret_cast<const Word*>(invalid.data());
  auto* const to = reinterpret_cast<Word*>(selected.data());
  const Divider by_channels(channels), by_rows(rows);
  return ForEach(cuda, selected.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t c, p;
    const int64_t b = by_rows.Split(by_channels.Split(i, &c), &p);
    to[i] = p < before[of_batch] ? from[(b * of_batch + selected_rows[p]) * channels + c] : fill[c];
  });
}

POLYOP_CUDA_KERNELS(SelectAndPad, SelectAndPadCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
