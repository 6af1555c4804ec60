// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/selective_scan/selective_scan_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose-inl.h"
#include "ops/sequence/selective_scan/selective_scan_backward.h"
#include "ops/sequence/selective_scan/selective_scan_states-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Adds the sums of the lanes of tile rows [0, count) to to[0, count). Clears up to three rows behind them.
void AddSumsOfLanes(float* tile, int64_t count, float* to) {
  const ScanTag d;
  const int64_t end = (count + 3) / 4 * 4;
  std::fill_n(tile + count * kChannels, (end - count) * kChannels, 0.0f);
  for (int64_t l = 0; l < end; l += 4) {
    hn::Vec<ScanTag> rows[4];
    for (int64_t k = 0; k < 4; ++k) rows[k] = hn::LoadU(d, tile + (l + k) * kChannels);
    float sums[4];
    hn::StoreU(SumsOfLanes(d, rows), QuadTag(), sums);
    for (int64_t k = 0; k < std::min<int64_t>(4, count - l); ++k) to[l + k] += sums[k];
  }
}

// Where the gradients of a call go. Those that are not requested are null.
template <class T>
struct ScanGradients {
  const T* output;
  const float* last_state;
  T *u, *delta, *z;
  float* initial;
  // Sums over the steps, [batch][dim][states] and [batch][dim].
  float *rates, *skips, *biases;
};

// The gradients of a block of channels: the states at the start of every kSteps steps, then the steps from the last
// one to the first.
template <class T>
class BlockGradients {
 public:
  static int64_t Floats(const ScanInputs<T>& in) {
    return ScanTiles<T>::Floats(in.states) + 7 * kTile + kChannels + in.states * kChannels +
           (in.length + kSteps - 1) / kSteps * in.states * kChannels;
  }

  BlockGradients(const ScanInputs<T>& in, const ScanGradients<T>& to, float* memory)
      : in_(in),
        to_(to),
        tiles_(in, memory),
        of_y_(memory + ScanTiles<T>::Floats(in.states)),
        of_b_(of_y_ + kTile),
        of_rate_(of_b_ + kTile),
        product_b_(of_rate_ + kTile),
        product_c_(product_b_ + kTile),
        decay_(product_c_ + kTile),
        h_(decay_ + kTile),
        rates_(h_ + kTile + kChannels),
        starts_(rates_ + in.states * kChannels) {}

  // Adds the gradients of B and C to of_b and of_c, [states][length].
  void Run(const ScanBlock& block, float* of_b, float* of_c) {
    const int64_t pieces = (in_.length + kSteps - 1) / kSteps, floats = in_.states * kChannels;
    const int64_t row = block.n * in_.dim + block.channel;
    std::fill_n(of_y_, kTile, 0.0f);
    std::fill_n(rates_, floats, 0.0f);
    std::fill_n(skip_, kChannels, 0.0);
    std::fill_n(bias_, kChannels, 0.0);
    tiles_.Start(block);
    for (int64_t p = 0; p < pieces; ++p) {
      std::copy_n(tiles_.state, floats, starts_ + p * floats);
      if (p + 1 == pieces) break;
      tiles_.Load(block, p * kSteps, kSteps);
      tiles_.Advance(block, p * kSteps, kSteps);
    }
    RowsToLanes(to_.last_state + row * in_.states, block.count, in_.states, 1, tiles_.carry);
    for (int64_t p = pieces - 1; p >= 0; --p) {
      const int64_t begin = p * kSteps, count = std::min(kSteps, in_.length - begin);
      std::copy_n(starts_ + p * floats, floats, tiles_.state);
      tiles_.Load(block, begin, count);
      LoadGradients(block, begin, count);
      for (int64_t s = 0; s < in_.states; ++s) {
        OneState(tiles_.B(block, s, begin), tiles_.C(block, s, begin), s, count);
        AddSumsOfLanes(product_b_, count, of_b + s * in_.length + begin);
        AddSumsOfLanes(product_c_, count, of_c + s * in_.length + begin);
      }
      Store(block, begin, count);
    }
    for (int64_t i = 0; i < block.count; ++i) {
      for (int64_t s = 0; s < in_.states; ++s) {
        to_.rates[(row + i) * in_.states + s] = rates_[s * kChannels + i];
        if (to_.initial != nullptr) to_.initial[(row + i) * in_.states + s] = tiles_.carry[s * kChannels + i];
      }
      to_.skips[row + i] = static_cast<float>(skip_[i]);
      to_.biases[row + i] = static_cast<float>(bias_[i]);
    }
  }

 private:
  int64_t At(const ScanBlock& block, int64_t i, int64_t begin) const {
    return (block.n * in_.dim + block.channel + i) * in_.length + begin;
  }

  // Sets the gradients of y, and clears the sums over the states.
  void LoadGradients(const ScanBlock& block, int64_t begin, int64_t count) {
    float* const row = tiles_.row;
    float* const gate = row + kSteps;
    for (int64_t i = 0; i < block.count; ++i) {
      WidenRow(to_.output + At(block, i, begin), count, row);
      if (in_.z != nullptr) {
        WidenRow(in_.z + At(block, i, begin), count, gate);
        ForRow(count, [&](auto d, int64_t l) HWY_ATTR {
          const auto z = hn::LoadU(d, gate + l);
          hn::StoreU(hn::Mul(hn::LoadU(d, row + l), hn::Mul(z, Sigmoid(d, z))), d, row + l);
        });
      }
      for (int64_t l = 0; l < count; ++l) of_y_[l * kChannels + i] = row[l];
    }
    std::fill_n(of_b_, count * kChannels, 0.0f);
    std::fill_n(of_rate_, count * kChannels, 0.0f);
  }

  // Repeats the steps of state s, then goes back.
  void OneState(const float* b, const float* c, int64_t s, int64_t count) {
    const ScanTag d;
    const auto rate = hn::LoadU(d, tiles_.rates + s * kChannels);
    auto h = hn::LoadU(d, tiles_.state + s * kChannels);
    hn::StoreU(h, d, h_);
    for (int64_t l = 0; l < count; ++l) {
      const int64_t at = l * kChannels;
      const auto decay = PowerOfTwo(d, hn::Mul(hn::LoadU(d, tiles_.step + at), rate));
      h = hn::MulAdd(decay, h, hn::Mul(hn::LoadU(d, tiles_.input + at), hn::Set(d, b[l])));
      hn::StoreU(decay, d, decay_ + at);
      hn::StoreU(h, d, h_ + at + kChannels);
      hn::StoreU(hn::MulAdd(h, hn::Set(d, c[l]), hn::LoadU(d, tiles_.y + at)), d, tiles_.y + at);
    }
    auto of_h = hn::LoadU(d, tiles_.carry + s * kChannels), of_rate = hn::LoadU(d, rates_ + s * kChannels);
    for (int64_t l = count - 1; l >= 0; --l) {
      const int64_t at = l * kChannels;
      const auto of_y = hn::LoadU(d, of_y_ + at), decay = hn::LoadU(d, decay_ + at);
      of_h = hn::MulAdd(of_y, hn::Set(d, c[l]), of_h);
      hn::StoreU(hn::Mul(of_y, hn::LoadU(d, h_ + at + kChannels)), d, product_c_ + at);
      hn::StoreU(hn::Mul(of_h, hn::LoadU(d, tiles_.input + at)), d, product_b_ + at);
      hn::StoreU(hn::MulAdd(of_h, hn::Set(d, b[l]), hn::LoadU(d, of_b_ + at)), d, of_b_ + at);
      const auto next = hn::Mul(decay, of_h), of_exponent = hn::Mul(next, hn::LoadU(d, h_ + at));
      hn::StoreU(hn::MulAdd(of_exponent, rate, hn::LoadU(d, of_rate_ + at)), d, of_rate_ + at);
      of_rate = hn::MulAdd(of_exponent, hn::LoadU(d, tiles_.step + at), of_rate);
      of_h = next;
    }
    hn::StoreU(of_h, d, tiles_.carry + s * kChannels);
    hn::StoreU(of_rate, d, rates_ + s * kChannels);
  }

  // Writes the gradients of u, delta and z, and sums up those of D and the bias.
  void Store(const ScanBlock& block, int64_t begin, int64_t count) {
    float* const row = tiles_.row;
    float* const other = row + kSteps;
    for (int64_t i = 0; i < block.count; ++i) {
      const float skip = in_.d == nullptr ? 0.0f : in_.d[block.channel + i];
      for (int64_t l = 0; l < count; ++l) {
        const int64_t e = l * kChannels + i;
        skip_[i] += of_y_[e] * tiles_.u[e];
        row[l] = of_b_[e] * tiles_.step[e];
        if (in_.d != nullptr) row[l] += skip * of_y_[e];
        other[l] = of_rate_[e] * (1 / kLog2E) + of_b_[e] * tiles_.u[e];
      }
      if (to_.u != nullptr) NarrowRow(row, count, to_.u + At(block, i, begin));
      if (in_.softplus) {
        const float* const raw = tiles_.raw + i * kSteps;
        ForRow(count, [&](auto d, int64_t l) HWY_ATTR {
          const auto x = hn::LoadU(d, raw + l), gradient = hn::LoadU(d, other + l);
          const auto slope = hn::IfThenElse(hn::Gt(x, hn::Set(d, 20.0f)), hn::Set(d, 1.0f), Sigmoid(d, x));
          hn::StoreU(hn::Mul(gradient, slope), d, other + l);
        });
      }
      for (int64_t l = 0; l < count; ++l) bias_[i] += other[l];
      if (to_.delta != nullptr) NarrowRow(other, count, to_.delta + At(block, i, begin));
      if (to_.z != nullptr) StoreGateGradients(block, i, skip, begin, count);
    }
  }

  void StoreGateGradients(const ScanBlock& block, int64_t i, float skip, int64_t begin, int64_t count) {
    float* const row = tiles_.row;
    float* const gate = row + kSteps;
    WidenRow(to_.output + At(block, i, begin), count, row);
    WidenRow(in_.z + At(block, i, begin), count, gate);
    for (int64_t l = 0; l < count; ++l) {
      const int64_t e = l * kChannels + i;
      row[l] *= in_.d == nullptr ? tiles_.y[e] : tiles_.y[e] + skip * tiles_.u[e];
    }
    ForRow(count, [&](auto d, int64_t l) HWY_ATTR {
      const auto z = hn::LoadU(d, gate + l), sigmoid = Sigmoid(d, z), one = hn::Set(d, 1.0f);
      const auto slope = hn::Mul(sigmoid, hn::MulAdd(z, hn::Sub(one, sigmoid), one));
      hn::StoreU(hn::Mul(hn::LoadU(d, row + l), slope), d, row + l);
    });
    NarrowRow(row, count, to_.z + At(block, i, begin));
  }

  const ScanInputs<T>& in_;
  const ScanGradients<T>& to_;
  ScanTiles<T> tiles_;
  // [kSteps][kChannels]: gradients of y; sums over the states; products for B and C; decays; states, one more.
  float *of_y_, *of_b_, *of_rate_, *product_b_, *product_c_, *decay_, *h_;
  float* rates_;   // [states][kChannels]: the gradient of A
  float* starts_;  // [pieces][states][kChannels]
  double skip_[kChannels], bias_[kChannels];
};

// Sets to[i] to the sum of `count` parts that are `step` apart.
template <class T>
void SumParts(const float* parts, int64_t count, int64_t step, int64_t length, float* sums, T* to) {
  std::copy_n(parts, length, sums);
  for (int64_t p = 1; p < count; ++p) {
    for (int64_t i = 0; i < length; ++i) sums[i] += parts[p * step + i];
  }
  NarrowRow(sums, length, to);
}

// Each task computes some blocks of a group, and its own sums for B and C.
template <class T>
Status SelectiveScanBackwardCpu(const SelectiveScanBackward& op, const Context& context, Tensor<const T, 3> grad_output,
                                Tensor<const float, 3> grad_last_state, Tensor<const T, 3> u, Tensor<const T, 3> delta,
                                Tensor<const float, 2> A, Tensor<const T, 4> B, Tensor<const T, 4> C,
                                std::optional<Tensor<const float, 1>> D, std::optional<Tensor<const T, 3>> z,
                                std::optional<Tensor<const float, 1>> delta_bias,
                                std::optional<Tensor<const float, 3>> initial_state, std::optional<Tensor<T, 3>> grad_u,
                                std::optional<Tensor<T, 3>> grad_delta, std::optional<Tensor<float, 2>> grad_A,
                                std::optional<Tensor<T, 4>> grad_B, std::optional<Tensor<T, 4>> grad_C,
                                std::optional<Tensor<float, 1>> grad_D, std::optional<Tensor<T, 3>> grad_z,
                                std::optional<Tensor<float, 1>> grad_delta_bias,
                                std::optional<Tensor<float, 3>> grad_initial_state) {
  const ScanInputs<T> in(op.delta_softplus, u, delta, A, B, C, D, z, delta_bias, initial_state);
  const int64_t rows = in.batch * in.dim, groups = in.batch * in.groups, coefficients = in.states * in.length;
  if (grad_z && !z) std::fill_n(grad_z->data(), grad_z->size(), FromFloat<T>(0));
  constexpr int64_t kParts = 16;  // tasks for one group
  const int64_t blocks = rows == 0 ? 0 : in.blocks_of_group();
  const int64_t parts = std::clamp<int64_t>(kParts / std::max<int64_t>(groups, 1), 1, std::max<int64_t>(blocks, 1));
  const int64_t floats = BlockGradients<T>::Floats(in);
  const Scratch<float> sums = context.Allocate<float>(groups * parts * 2 * coefficients);
  const Scratch<float> of_rows = context.Allocate<float>(rows * (in.states + 2) + in.length);
  if (!sums || !of_rows) return Internal("out of memory: states of ", ToString(u.shape()));
  const ScanGradients<T> to = {grad_output.data(),
                               grad_last_state.data(),
                               DataOf(grad_u),
                               DataOf(grad_delta),
                               z ? DataOf(grad_z) : nullptr,
                               DataOf(grad_initial_state),
                               of_rows.data(),
                               of_rows.data() + rows * in.states,
                               of_rows.data() + rows * (in.states + 1)};
  const auto compute = [&](float* memory, int64_t begin, int64_t end) HWY_ATTR {
    BlockGradients<T> gradients(in, to, memory);
    for (int64_t index = begin; index < end; ++index) {
      float* const of_b = sums.data() + index * 2 * coefficients;
      std::fill_n(of_b, 2 * coefficients, 0.0f);
      const int64_t group = index / parts, part = index % parts;
      for (int64_t k = part * blocks / parts; k < (part + 1) * blocks / parts; ++k) {
        gradients.Run(ScanBlock::Of(in, group * blocks + k), of_b, of_b + coefficients);
      }
    }
  };
  if (!context.ParallelForWithScratch<float>(groups * parts, 1, floats, compute)) {
    return Internal("out of memory: states of ", ToString(u.shape()));
  }
  for (int64_t row = 0; row < groups * in.states; ++row) {
    const float* const from = sums.data() + row / in.states * parts * 2 * coefficients + row % in.states * in.length;
    float* const buffer = of_rows.data() + rows * (in.states + 2);
    if (grad_B) SumParts(from, parts, 2 * coefficients, in.length, buffer, grad_B->data() + row * in.length);
    if (grad_C) {
      SumParts(from + coefficients, parts, 2 * coefficients, in.length, buffer, grad_C->data() + row * in.length);
    }
  }
  const auto sum_images = [&](const float* from, int64_t count, float* sum) {
    std::fill_n(sum, count, 0.0f);
    for (int64_t n = 0; n < in.batch; ++n) {
      for (int64_t i = 0; i < count; ++i) sum[i] += from[n * count + i];
    }
  };
  if (grad_A) sum_images(to.rates, in.dim * in.states, grad_A->data());
  if (grad_D) sum_images(to.skips, in.dim, grad_D->data());
  if (grad_delta_bias) sum_images(to.biases, in.dim, grad_delta_bias->data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SelectiveScanBackward, SelectiveScanBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
