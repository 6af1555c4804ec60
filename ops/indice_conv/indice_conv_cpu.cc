#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/indice_conv/indice_conv_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/sparse/gathered_product-inl.h"
#include "families/sparse/sparse_values.h"
#include "kernels/cpu/simd.h"
#include "ops/indice_conv/indice_conv.h"

#ifndef POLYOP_OPS_INDICE_CONV_ONCE_
#define POLYOP_OPS_INDICE_CONV_ONCE_
namespace polyop {
namespace {

struct Pair {
  int32_t in, out;
};

template <class I>
Status CheckLists(const Context& context, const PairLists<I>& lists, int64_t inputs, int64_t outputs) {
  const Scratch<bool> invalid = context.Allocate<bool>(lists.offsets);
  if (!invalid) return Internal("out of memory: ", lists.offsets, " offsets");
  context.ParallelFor(lists.offsets, 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) invalid[f] = !lists.Check(f, inputs, outputs).ok();
  });
  for (int64_t f = 0; f < lists.offsets; ++f) {
    if (invalid[f]) return lists.Check(f, inputs, outputs);
  }
  return Status::Ok();
}

// Sorts the pairs of each offset into the blocks of their outputs; the order within a block is kept. Block b of offset
// f has pairs [ends[f * (blocks + 1) + b], ends[f * (blocks + 1) + b + 1]).
template <class I>
void SortByBlock(const Context& context, const PairLists<I>& lists, const int64_t* firsts, int64_t block_rows,
                 int64_t blocks, int64_t* ends, Pair* pairs) {
  context.ParallelFor(lists.offsets, 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      int64_t* const block_ends = ends + f * (blocks + 1);
      std::fill_n(block_ends, blocks + 1, int64_t{0});
      const int64_t count = lists.IsCentre(f) ? 0 : lists.Count(f);
      for (int64_t j = 0; j < count; ++j) ++block_ends[lists.Output(f, j) / block_rows];
      int64_t before = firsts[f];
      for (int64_t b = 0; b <= blocks; ++b) before += std::exchange(block_ends[b], before);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t out = lists.Output(f, j);
        pairs[block_ends[out / block_rows]++] = {static_cast<int32_t>(lists.Input(f, j)),
                                                 static_cast<int32_t>(out % block_rows)};
      }
      // Each block's begin has advanced to its end, which is the begin of the next block.
      std::copy_backward(block_ends, block_ends + blocks, block_ends + blocks + 1);
      block_ends[0] = firsts[f];
    }
  });
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_INDICE_CONV_ONCE_

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
  POLYOP_RETURN_IF_ERROR(CheckLists(context, lists, features.dim(0), outputs));
  Tensor<T, 2> out;
  POLYOP_RETURN_IF_ERROR(pending.Allocate(outputs, &out));
  if (out.size() == 0) return Status::Ok();  // avoids scratch that is proportional to the channels
  const int64_t block_rows = SparseBlockRows(out.dim(1)), blocks = (outputs + block_rows - 1) / block_rows;
  const Scratch<int64_t> firsts = context.Allocate<int64_t>(lists.offsets + 1);
  const Scratch<int64_t> ends = context.Allocate<int64_t>(lists.offsets * (blocks + 1));
  if (!firsts || !ends) return Internal("out of memory: ", blocks, " blocks of outputs");
  firsts[0] = 0;
  for (int64_t f = 0; f < lists.offsets; ++f) firsts[f + 1] = firsts[f] + (lists.IsCentre(f) ? 0 : lists.Count(f));
  const Scratch<Pair> pairs = context.Allocate<Pair>(firsts[lists.offsets]);
  if (!pairs) return Internal("out of memory: ", firsts[lists.offsets], " pairs");
  SortByBlock(context, lists, firsts.data(), block_rows, blocks, ends.data(), pairs.data());
  const auto for_pairs = [&](int64_t f, int64_t block, const auto& add) {
    if (lists.IsCentre(f)) {
      const int64_t first = block * block_rows, size = std::min(block_rows, outputs - first);
      for (int64_t o = 0; o < size; ++o) add(static_cast<int32_t>(first + o), static_cast<int32_t>(o));
      return;
    }
    const int64_t* const range = ends.data() + f * (blocks + 1) + block;
    for (int64_t j = range[0]; j < range[1]; ++j) add(pairs[j].in, pairs[j].out);
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
