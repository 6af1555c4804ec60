// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/words.h"
#include "ops/boxes/select_and_pad/select_and_pad.h"

namespace polyop {
namespace {

// The kernel only copies, so the file is compiled once, not per instruction set.

template <class T, class I>
Status SelectAndPadCpu(const SelectAndPad&, const Context& context, Tensor<const T, 3> feat, Tensor<const I, 1> flags,
                       Tensor<const T, 1> invalid, Tensor<T, 3> selected) {
  using Word = WordOf<T>;
  const int64_t of_batch = feat.dim(1), rows = selected.dim(1), channels = feat.dim(2);
  const Scratch<int64_t> selected_rows = context.Allocate<int64_t>(std::min(rows, of_batch));
  if (!selected_rows) return Internal("out of memory: ", rows, " rows");
  int64_t found = 0;
  for (int64_t q = 0; q < of_batch && found < rows; ++q) {
    if (flags[q] != 0) selected_rows[found++] = q;
  }
  const auto* const from = reinterpret_cast<const Word*>(feat.data());
  const auto* const fill = reinterpret_cast<const Word*>(invalid.data());
  auto* const to = reinterpret_cast<Word*>(selected.data());
  context.ParallelFor(
      feat.dim(0) * rows, GrainFor(5 + 0.2 * static_cast<double>(channels)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t b = i / rows, p = i % rows;
          const Word* const row = p < found ? from + (b * of_batch + selected_rows[p]) * channels : fill;
          std::copy_n(row, channels, to + i * channels);
        }
      });
  return Status::Ok();
}
POLYOP_PLAIN_CPU_KERNELS(SelectAndPad, SelectAndPadCpu, (float, int32_t), (float, int64_t), (Half, int32_t),
                         (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
