// SPDX-License-Identifier: Apache-2.0
// The parts of a scan that the operator and its gradient share. Compiled once per instruction set; include it from a
// kernel file.
#if defined(POLYOP_OPS_SEQUENCE_SELECTIVE_SCAN_SELECTIVE_SCAN_STATES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SEQUENCE_SELECTIVE_SCAN_SELECTIVE_SCAN_STATES_INL_H_
#undef POLYOP_OPS_SEQUENCE_SELECTIVE_SCAN_SELECTIVE_SCAN_STATES_INL_H_
#else
#define POLYOP_OPS_SEQUENCE_SELECTIVE_SCAN_SELECTIVE_SCAN_STATES_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/sequence/selective_scan/selective_scan_tensors.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using ScanTag = hn::CappedTag<float, 16>;
constexpr int64_t kChannels = static_cast<int64_t>(hn::MaxLanes(ScanTag()));  // computed together, one in each lane
constexpr int64_t kSteps = 64;                                                // computed before the next channels
constexpr int64_t kTile = kSteps * kChannels;
constexpr float kLog2E = 1.4426950408889634f;

// Returns 2^x with a relative error of 2e-7: 0 below -125, infinity from 128 on, and NaN for NaN.
template <class D, class V>
HWY_INLINE V PowerOfTwo(D d, V x) {
  const hn::RebindToSigned<D> di;
  // x = whole + r. Adding 1.5 * 2^23 puts `whole` into the sum's lowest bits.
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto sum = hn::Add(x, shift);
  const auto r = hn::Sub(x, hn::Sub(sum, shift));
  // Twice the polynomial of 2^r for |r| <= 1/2, times half of 2^whole, which is finite up to 2^128.
  auto p = hn::MulAdd(r, hn::Set(d, 3.0642147e-4f), hn::Set(d, 2.6780436e-3f));
  p = hn::MulAdd(r, p, hn::Set(d, 1.9237054e-2f));
  p = hn::MulAdd(r, p, hn::Set(d, 1.1100724e-1f));
  p = hn::MulAdd(r, p, hn::Set(d, 4.8045295e-1f));
  p = hn::MulAdd(r, p, hn::Set(d, 1.3862944f));
  p = hn::MulAdd(r, p, hn::Set(d, 2.0f));
  const auto half = hn::BitCast(d, hn::Add(hn::ShiftLeft<23>(hn::BitCast(di, sum)), hn::Set(di, 126 << 23)));
  const auto power = hn::IfThenElse(hn::Lt(x, hn::Set(d, -125.0f)), hn::Zero(d), hn::Mul(p, half));
  return hn::IfThenElse(hn::Ge(x, hn::Set(d, 128.0f)), hn::Inf(d), power);
}

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, PowerOfTwo(d, hn::Mul(x, hn::Set(d, -kLog2E)))));
}

// Returns log(1 + exp(x)), or x above 20, where the difference is below the precision.
template <class D, class V>
HWY_INLINE V Softplus(D d, V x) {
  const auto is_number = hn::Le(x, hn::Set(d, 20.0f));
  const auto power = PowerOfTwo(d, hn::Mul(x, hn::Set(d, kLog2E)));
  return hn::IfThenElse(is_number, hn::Log1p(d, hn::IfThenElseZero(is_number, power)), x);
}

// Replaces row[0, count) by f(row[i], i). Writes up to one vector beyond.
template <class F>
HWY_INLINE void ForRow(int64_t count, const F& f) {
  const ScanTag d;
  for (int64_t i = 0; i < count; i += kChannels) f(d, i);
}

template <class T>
struct ScanInputs : ScanTensors<T> {
  using ScanTensors<T>::ScanTensors;
  using ScanTensors<T>::dim, ScanTensors<T>::groups;

  int64_t channels_of_group() const { return dim / groups; }
  int64_t blocks_of_group() const { return (channels_of_group() + kChannels - 1) / kChannels; }
};

// Up to kChannels channels of a group.
struct ScanBlock {
  int64_t n, g, channel, count;

  template <class T>
  static ScanBlock Of(const ScanInputs<T>& in, int64_t index) {
    const int64_t blocks = in.blocks_of_group(), of_group = in.channels_of_group(), first = index % blocks * kChannels;
    const int64_t group = index / blocks;
    return {group / in.groups, group % in.groups, group % in.groups * of_group + first,
            std::min(kChannels, of_group - first)};
  }
};

// Copies rows [count][states] to columns [states][kChannels], times `factor`; other lanes are 0.
inline void RowsToLanes(const float* rows, int64_t count, int64_t states, float factor, float* lanes) {
  std::fill_n(lanes, states * kChannels, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t s = 0; s < states; ++s) lanes[s * kChannels + i] = rows[i * states + s] * factor;
  }
}

// Memory of a task, and the steps of a block that it holds.
template <class T>
class ScanTiles {
 public:
  static int64_t Floats(int64_t states) {
    return 5 * kTile + 2 * kChannels * kSteps + 3 * states * kChannels + 2 * states * kSteps;
  }

  // `memory` has Floats() elements.
  ScanTiles(const ScanInputs<T>& in, float* memory)
      : in_(in),
        step(memory),
        input(step + kTile),
        y(input + kTile),
        u(y + kTile),
        slope(u + kTile),
        raw(slope + kTile),
        row(raw + kChannels * kSteps),
        rates(row + kChannels * kSteps),
        state(rates + in.states * kChannels),
        carry(state + in.states * kChannels),
        b_(carry + in.states * kChannels),
        c_(b_ + in.states * kSteps) {}

  // Reads the rates and the initial state of a block.
  void Start(const ScanBlock& block) {
    std::fill_n(step, 5 * kTile, 0.0f);
    RowsToLanes(in_.a + block.channel * in_.states, block.count, in_.states, kLog2E, rates);
    if (in_.initial == nullptr) {
      std::fill_n(state, in_.states * kChannels, 0.0f);
    } else {
      const float* const from = in_.initial + (block.n * in_.dim + block.channel) * in_.states;
      RowsToLanes(from, block.count, in_.states, 1, state);
    }
  }

  // Reads steps [begin, begin + count): the step sizes, their products with u, and B and C.
  void Load(const ScanBlock& block, int64_t begin, int64_t count) {
    for (int64_t i = 0; i < block.count; ++i) {
      const int64_t at = ((block.n * in_.dim) + block.channel + i) * in_.length + begin;
      float* const raws = raw + i * kSteps;
      WidenRow(in_.delta + at, count, raws);
      WidenRow(in_.u + at, count, row);
      const float bias = in_.bias == nullptr ? 0.0f : in_.bias[block.channel + i];
      float* const sizes = row + kSteps;
      ForRow(count, [&](auto d, int64_t l) HWY_ATTR {
        const auto sum = hn::Add(hn::LoadU(d, raws + l), hn::Set(d, bias));
        hn::StoreU(sum, d, raws + l);
        hn::StoreU(in_.softplus ? Softplus(d, sum) : sum, d, sizes + l);
      });
      for (int64_t l = 0; l < count; ++l) {
        step[l * kChannels + i] = sizes[l];
        u[l * kChannels + i] = row[l];
        input[l * kChannels + i] = sizes[l] * row[l];
      }
    }
    std::fill_n(y, count * kChannels, 0.0f);
    if constexpr (!std::is_same_v<T, float>) {
      for (int64_t s = 0; s < in_.states; ++s) {
        WidenRow(in_.b + RowOf(block, s) + begin, count, b_ + s * kSteps);
        WidenRow(in_.c + RowOf(block, s) + begin, count, c_ + s * kSteps);
      }
    }
  }

  const float* B(const ScanBlock& block, int64_t s, int64_t begin) const {
    if constexpr (std::is_same_v<T, float>) return in_.b + RowOf(block, s) + begin;
    return b_ + s * kSteps;
  }
  const float* C(const ScanBlock& block, int64_t s, int64_t begin) const {
    if constexpr (std::is_same_v<T, float>) return in_.c + RowOf(block, s) + begin;
    return c_ + s * kSteps;
  }

  // Advances the states by `count` steps and adds their outputs to y.
  void Advance(const ScanBlock& block, int64_t begin, int64_t count) {
    int64_t s = 0;
    for (; s + 2 <= in_.states; s += 2) AdvanceStates<2>(block, s, begin, count);
    if (s < in_.states) AdvanceStates<1>(block, s, begin, count);
  }

 private:
  int64_t RowOf(const ScanBlock& block, int64_t s) const {
    return ((block.n * in_.groups + block.g) * in_.states + s) * in_.length;
  }

  // Several independent states hide the latency of a step.
  template <int kCount>
  void AdvanceStates(const ScanBlock& block, int64_t s, int64_t begin, int64_t count) {
    const ScanTag d;
    hn::Vec<ScanTag> h[kCount], rate[kCount];
    const float *b[kCount], *c[kCount];
    for (int k = 0; k < kCount; ++k) {
      h[k] = hn::LoadU(d, state + (s + k) * kChannels);
      rate[k] = hn::LoadU(d, rates + (s + k) * kChannels);
      b[k] = B(block, s + k, begin);
      c[k] = C(block, s + k, begin);
    }
    for (int64_t l = 0; l < count; ++l) {
      const auto size = hn::LoadU(d, step + l * kChannels), x = hn::LoadU(d, input + l * kChannels);
      auto sum = hn::LoadU(d, y + l * kChannels);
      for (int k = 0; k < kCount; ++k) {
        h[k] = hn::MulAdd(PowerOfTwo(d, hn::Mul(size, rate[k])), h[k], hn::Mul(x, hn::Set(d, b[k][l])));
        sum = hn::MulAdd(h[k], hn::Set(d, c[k][l]), sum);
      }
      hn::StoreU(sum, d, y + l * kChannels);
    }
    for (int k = 0; k < kCount; ++k) hn::StoreU(h[k], d, state + (s + k) * kChannels);
  }

  const ScanInputs<T>& in_;

 public:
  // [kSteps][kChannels]: step sizes, step size times u, outputs, u, and one for the gradient.
  float *step, *input, *y, *u, *slope;
  // [kChannels][kSteps]: delta with its bias, and rows for temporary use.
  float *raw, *row;
  // [states][kChannels]: A / log(2), the state, and one for the gradient.
  float *rates, *state, *carry;

 private:
  float *b_, *c_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
