// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sorting/find_indices/find_indices_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/mask_bits-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/sorting/find_indices/find_indices.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBits = 64;

// Returns a bit for each of x[begin, end), at most 64: whether the element is found.
template <bool kNonZero, class T>
uint64_t FoundBits(const T* x, int64_t begin, int64_t end) {
  const hn::CappedTag<T, kBits> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  uint64_t bits = 0;
  if (end - begin == kBits && (kNonZero || begin > 0)) {
    for (int64_t i = 0; i < kBits; i += lanes) {
      const auto here = hn::LoadU(d, x + begin + i);
      const auto other = kNonZero ? hn::Zero(d) : hn::LoadU(d, x + begin + i - 1);
      bits |= BitsOf(d, hn::Not(hn::Eq(here, other))) << i;  // Ne of NaN depends on the instruction set
    }
    return bits;
  }
  for (int64_t i = begin; i < end; ++i) {
    const bool found = kNonZero ? x[i] != T{0} : i == 0 || x[i] != x[i - 1];
    bits |= uint64_t{found} << (i - begin);
  }
  return bits;
}

// Writes the coordinates of elements, whose positions grow. kDimensions: the number of coordinates, or 0 if it varies.
template <int kDimensions>
class IndexWriter {
 public:
  IndexWriter(const IndexExtents& extents, int64_t* to) : extents_(extents), to_(to) {}

  void Write(int64_t position) {
    if constexpr (kDimensions == 1) {
      *to_++ = position;
    } else {
      if (position >= row_end_) BeginRow(position);
      for (int c = 0; c < last(); ++c) to_[c] = prefix_[c];
      to_[last()] = position - row_begin_;
      to_ += last() + 1;
    }
  }

 private:
  int last() const { return (kDimensions > 0 ? kDimensions : extents_.dimensions) - 1; }

  HWY_NOINLINE void BeginRow(int64_t position) {
    const int last = this->last();
    int64_t rest = position / extents_.extent[last];
    row_begin_ = rest * extents_.extent[last];
    row_end_ = row_begin_ + extents_.extent[last];
    for (int c = last - 1; c > 0; --c) {
      prefix_[c] = rest % extents_.extent[c];
      rest /= extents_.extent[c];
    }
    prefix_[0] = rest;
  }

  const IndexExtents& extents_;
  int64_t* to_;
  int64_t row_begin_ = 0, row_end_ = 0;
  int64_t prefix_[kMaxRank] = {};
};

// Writes the coordinates of the elements whose bits are set, of blocks [begin, end).
template <int kDimensions>
void WriteIndices(const IndexExtents& extents, const uint64_t* found, int64_t begin, int64_t end, int64_t* to) {
  IndexWriter<kDimensions> writer(extents, to);
  for (int64_t b = begin; b < end; ++b) {
    for (uint64_t bits = found[b]; bits != 0; bits &= bits - 1) writer.Write(b * kBits + std::countr_zero(bits));
  }
}

template <bool kNonZero, class T>
Status FindIn(const FindIndices& op, const Context& context, const T* x, const Shape& shape, int64_t size,
              const Pending<int64_t, 2>& indices) {
  constexpr int64_t kGrain = 256;  // blocks of 64 elements
  const int64_t blocks = (size + kBits - 1) / kBits, tasks = Context::NumTasks(blocks, kGrain);
  const Scratch<int64_t> before = context.Allocate<int64_t>(tasks + 1);
  const Scratch<uint64_t> found = context.Allocate<uint64_t>(blocks);
  if (!before || !found) return Internal("out of memory: bits of ", size, " elements");
  context.ParallelFor(blocks, kGrain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    int64_t count = 0;
    for (int64_t b = begin; b < end; ++b) {
      found[b] = FoundBits<kNonZero>(x, b * kBits, std::min(size, (b + 1) * kBits));
      count += std::popcount(found[b]);
    }
    before[task + 1] = count;
  });
  before[0] = 0;
  for (int64_t task = 0; task < tasks; ++task) before[task + 1] += before[task];
  Tensor<int64_t, 2> output;
  POLYOP_RETURN_IF_ERROR(indices.Allocate(before[tasks], &output));
  const IndexExtents extents(shape, op.dimensions);
  const auto write = op.dimensions == 1 ? WriteIndices<1> : op.dimensions == 2 ? WriteIndices<2> : WriteIndices<0>;
  context.ParallelFor(blocks, kGrain, [&](int64_t task, int64_t begin, int64_t end) {
    write(extents, found.data(), begin, end, output.data() + before[task] * op.dimensions);
  });
  return Status::Ok();
}

template <class T>
Status FindIndicesCpu(const FindIndices& op, const Context& context, Tensor<const T, kAnyRank> x,
                      Pending<int64_t, 2> indices) {
  using U = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  const auto find = op.mode == FindIndices::Mode::kNonZero ? FindIn<true, U> : FindIn<false, U>;
  return find(op, context, reinterpret_cast<const U*>(x.data()), x.shape(), x.size(), indices);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(FindIndices, FindIndicesCpu, bool, uint8_t, int32_t, int64_t, float, double);
}  // namespace polyop
#endif
