// SPDX-License-Identifier: Apache-2.0
// Outputs are divided into blocks of rows, whose sums fit into the L2 cache; a block is an item of the parallel loop.
// The pairs of each offset are sorted by block first. Then a task multiplies the features of the pairs of one offset
// after the other by the offset's matrix and adds them to its sums (gathered_product-inl.h): no two tasks add to one
// row, and the order of additions does not depend on the number of threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/indice_conv/indice_conv_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/sparse/gathered_product-inl.h"
#include "ops/sparse/indice_conv/indice_conv.h"
#include "ops/sparse/pair_blocks-inl.h"
#include "ops/sparse/sparse_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T, class I>
Status Multiply(const IndiceConv& op, const Context& context, const Tensor<const T, 2>& features,
                const Tensor<const T, 5>& filters, const Tensor<const I, 3>& indice_pairs,
                const Tensor<const I, 1>& counts, int64_t outputs, const Pending<T, 2>& pending) {
  POLYOP_RETURN_IF_ERROR(CheckOutputCount(outputs, pending.max()));
  if (outputs > INT32_MAX) return InvalidArgument("'num_act_out': expected at most ", INT32_MAX, ", got ", outputs);
  const PairLists<I> lists{indice_pairs.data(), counts.data(), counts.dim(0), indice_pairs.dim(2), op.is_subm};
  POLYOP_RETURN_IF_ERROR(lists.CheckAll(context, features.dim(0), outputs));
  Tensor<T, 2> out;
  POLYOP_RETURN_IF_ERROR(pending.Allocate(outputs, &out));
  if (out.size() == 0) return Status::Ok();  // avoids scratch that is proportional to the channels
  PairBlocks blocks(context, lists.offsets, outputs, SparseBlockRows(out.dim(1)));
  if (!blocks) return Internal("out of memory: blocks of ", outputs, " outputs");
  const auto visit = [&](int64_t f, const auto& add) { lists.ForListed(f, add); };
  blocks.Count(visit);
  const Scratch<SparsePair> pairs = context.Allocate<SparsePair>(blocks.size());
  if (!pairs) return Internal("out of memory: ", blocks.size(), " pairs");
  blocks.Sort(visit, pairs.data());
  const auto for_pairs = [&](int64_t f, int64_t block, const auto& add) {
    if (!lists.IsCentre(f)) return blocks.ForPairs(f, block, add);
    const int64_t first = block * blocks.block_rows(), size = std::min(blocks.block_rows(), outputs - first);
    for (int64_t o = 0; o < size; ++o) add(static_cast<int32_t>(first + o), static_cast<int32_t>(o));
  };
  return GatheredProduct<T>(context, features, filters.data(), lists.offsets, nullptr, ActivationRule{}, for_pairs,
                            out);
}

// Separate entry points for 32-bit and 64-bit indices, because a dispatch table takes templates of one argument.
template <class T>
Status IndiceConvI32(const IndiceConv& op, const Context& context, Tensor<const T, 2> features,
                     Tensor<const T, 5> filters, Tensor<const int32_t, 3> indice_pairs, Tensor<const int32_t, 1> counts,
                     Tensor<const int32_t, 0> outputs, Pending<T, 2> out) {
  return Multiply(op, context, features, filters, indice_pairs, counts, outputs[0], out);
}
template <class T>
Status IndiceConvI64(const IndiceConv& op, const Context& context, Tensor<const T, 2> features,
                     Tensor<const T, 5> filters, Tensor<const int64_t, 3> indice_pairs, Tensor<const int64_t, 1> counts,
                     Tensor<const int64_t, 0> outputs, Pending<T, 2> out) {
  return Multiply(op, context, features, filters, indice_pairs, counts, outputs[0], out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(IndiceConv, IndiceConvI32, float, Half, BFloat16);
POLYOP_CPU_KERNELS(IndiceConv, IndiceConvI64, float, Half, BFloat16);
}  // namespace polyop
#endif
