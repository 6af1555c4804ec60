// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/cumulative/cumulative_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/running_max-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose_square-inl.h"
#include "ops/sequence/cumulative/cumulative.h"
#include "ops/sequence/cumulative/cumulative_values.h"

#ifndef POLYOP_OPS_CUMULATIVE_ONCE_
#define POLYOP_OPS_CUMULATIVE_ONCE_
namespace polyop {
namespace {

constexpr int64_t kColumns = 1024;  // columns that are scanned together; their running values stay in the L1 cache

// Scans `count` elements that are `step` apart. Returns the running value of all.
template <bool kProduct, class T>
Accumulated<T> ScanElements(const T* input, int64_t count, int64_t step, bool exclusive, Accumulated<T> running,
                            T* output) {
  for (int64_t i = 0; i < count; ++i, input += step, output += step) {
    const Accumulated<T> next = Combined<kProduct>(running, ToAccumulated(*input));
    *output = FromAccumulated<T>(exclusive ? running : next);
    running = next;
  }
  return running;
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_CUMULATIVE_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The type in which elements of T are loaded and stored.
template <class T>
using Loaded = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T, float>;

// The running values of as many lines as a vector of elements has lanes. Floats are combined in two vectors of doubles.
template <bool kProduct, class T>
class Running {
 public:
  using D = hn::CappedTag<Loaded<T>, 64 / sizeof(Loaded<T>)>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));

  HWY_INLINE explicit Running(const Accumulated<T>* from)
      : first_(hn::LoadU(DA(), from)), second_(hn::LoadU(DA(), from + (kLanes - kHalf))) {}
  HWY_INLINE void Store(Accumulated<T>* to) const {
    hn::StoreU(second_, DA(), to + (kLanes - kHalf));
    hn::StoreU(first_, DA(), to);
  }

  // Returns the running values, and combines them with the next elements afterwards (kExclusive) or before.
  template <bool kExclusive>
  HWY_INLINE hn::Vec<D> Next(hn::Vec<D> x) {
    if constexpr (kExclusive) {
      const auto before = Value();
      Take(x);
      return before;
    } else {
      Take(x);
      return Value();
    }
  }

 private:
  static constexpr bool kTwo = std::is_same_v<Loaded<T>, float>;
  using DA = std::conditional_t<kTwo, hn::CappedTag<double, 64 / sizeof(double)>, D>;
  static constexpr int kHalf = static_cast<int>(hn::MaxLanes(DA()));

  static HWY_INLINE hn::Vec<DA> Combine(hn::Vec<DA> a, hn::Vec<DA> b) {
    if constexpr (kProduct) {
      return hn::Mul(a, b);
    } else {
      return hn::Add(a, b);
    }
  }
  HWY_INLINE void Take(hn::Vec<D> x) {
    if constexpr (kTwo) {
      first_ = Combine(first_, hn::PromoteLowerTo(DA(), x));
      second_ = Combine(second_, hn::PromoteUpperTo(DA(), x));
    } else {
      first_ = Combine(first_, x);
    }
  }
  HWY_INLINE hn::Vec<D> Value() const {
    if constexpr (kTwo) {
      const hn::Rebind<float, DA> half;
      return hn::Combine(D(), hn::DemoteTo(half, second_), hn::DemoteTo(half, first_));
    } else {
      return first_;
    }
  }

  hn::Vec<DA> first_, second_;  // the same if one vector suffices; then only the first one is combined
};

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadElements(D d, const T* from) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    return hn::LoadU(d, from);
  } else {
    return LoadFloat(d, from);
  }
}
template <class D, class T>
HWY_INLINE void StoreElements(hn::Vec<D> v, D d, T* to) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    hn::StoreU(v, d, to);
  } else {
    StoreFloat(v, d, to);
  }
}

// Scans up to as many lines of contiguous elements as a vector has lanes, each in its lane.
template <bool kProduct, bool kExclusive, class T>
void ScanRows(const T* input, int64_t rows, int64_t length, bool reverse, T* output) {
  using Values = Running<kProduct, T>;
  using D = typename Values::D;
  constexpr int kLanes = Values::kLanes;
  const D d;
  Accumulated<T> running[kLanes];
  std::fill_n(running, kLanes, kOfNone<kProduct, Accumulated<T>>);
  const int64_t squares = rows > 1 ? length / kLanes : 0, whole = squares * kLanes;
  const auto scan_rest = [&] {  // the last elements of the lines, or all of a single line
    const int64_t first = reverse ? length - 1 : whole;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * length + first;
      running[r] =
          ScanElements<kProduct>(input + at, length - whole, reverse ? -1 : 1, kExclusive, running[r], output + at);
    }
  };
  if (reverse) scan_rest();
  const T* row[kLanes];
  for (int r = 0; r < kLanes; ++r) row[r] = input + std::min<int64_t>(r, rows - 1) * length;
  Values values(running);
  for (int64_t s = 0; s < squares; ++s) {
    const int64_t at = (reverse ? squares - 1 - s : s) * kLanes;
    hn::Vec<D> square[kLanes];
    for (int r = 0; r < kLanes; ++r) square[r] = LoadElements(d, row[r] + at);
    if (reverse) {
      for (int r = 0; r < kLanes; ++r) square[r] = hn::Reverse(d, square[r]);
    }
    TransposeSquare(d, square);
    for (int k = 0; k < kLanes; ++k) square[k] = values.template Next<kExclusive>(square[k]);
    TransposeSquare(d, square);
    if (reverse) {
      for (int r = 0; r < kLanes; ++r) square[r] = hn::Reverse(d, square[r]);
    }
    for (int r = 0; r < kLanes; ++r) {
      if (r < rows) StoreElements(square[r], d, output + r * length + at);
    }
  }
  values.Store(running);
  if (!reverse) scan_rest();
}

// Scans `length` rows of up to kColumns neighbouring columns; the rows are `step` elements apart.
template <bool kProduct, bool kExclusive, class T>
void ScanColumns(const T* input, int64_t length, int64_t step, int64_t columns, T* output) {
  using Values = Running<kProduct, T>;
  using D = typename Values::D;
  const D d;
  const int64_t whole = columns / Values::kLanes * Values::kLanes;
  HWY_ALIGN Accumulated<T> running[kColumns];
  std::fill_n(running, columns, kOfNone<kProduct, Accumulated<T>>);
  for (int64_t k = 0; k < length; ++k, input += step, output += step) {
    for (int64_t j = 0; j < whole; j += Values::kLanes) {
      Values values(running + j);
      StoreElements(values.template Next<kExclusive>(LoadElements(d, input + j)), d, output + j);
      values.Store(running + j);
    }
    for (int64_t j = whole; j < columns; ++j) {
      running[j] = ScanElements<kProduct>(input + j, 1, 1, kExclusive, running[j], output + j);
    }
  }
}

template <bool kProduct, bool kExclusive, class T>
void Scan(const Context& context, const ScanExtents& e, bool reverse, const T* input, T* output) {
  if (e.inner == 1) {
    constexpr int64_t kRows = Running<kProduct, T>::kLanes;
    const double nanoseconds = 0.5 * static_cast<double>(kRows * e.length);
    context.ParallelFor((e.outer + kRows - 1) / kRows, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t row = begin * kRows; row < std::min(e.outer, end * kRows); row += kRows) {
        const int64_t at = row * e.length;
        ScanRows<kProduct, kExclusive>(input + at, std::min(kRows, e.outer - row), e.length, reverse, output + at);
      }
    });
    return;
  }
  const auto scan = [&](int64_t plane, int64_t column, int64_t columns) HWY_ATTR {
    const int64_t at = (plane * e.length + (reverse ? e.length - 1 : 0)) * e.inner + column;
    ScanColumns<kProduct, kExclusive>(input + at, e.length, reverse ? -e.inner : e.inner, columns, output + at);
  };
  ForColumnStrips(context, e.outer, e.inner, kColumns, static_cast<double>(e.length) * 0.5, scan);
}

template <class T>
Status CumulativeCpu(const Cumulative& op, const Context& context, Tensor<const T, kAnyRank> input,
                     Tensor<T, kAnyRank> output) {
  const ScanExtents e = ScanExtents::Of(op.axis, input.shape());
  const bool product = op.mode == Cumulative::Mode::kProd, exclusive = op.exclusive != 0;
  const auto scan = product ? (exclusive ? Scan<true, true, T> : Scan<true, false, T>)
                            : (exclusive ? Scan<false, true, T> : Scan<false, false, T>);
  scan(context, e, op.reverse != 0, input.data(), output.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Cumulative, CumulativeCpu, float, double, Half, BFloat16, int32_t, int64_t);
}  // namespace polyop
#endif
