// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/selective_scan/selective_scan_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/sequence/selective_scan/selective_scan.h"
#include "ops/sequence/selective_scan/selective_scan_states-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Writes the outputs of steps [begin, begin + count).
template <class T>
void StoreOutputs(const ScanInputs<T>& in, const ScanBlock& block, const ScanTiles<T>& tiles, int64_t begin,
                  int64_t count, T* output) {
  float* const row = tiles.row;
  float* const gate = row + kSteps;
  for (int64_t i = 0; i < block.count; ++i) {
    const int64_t at = (block.n * in.dim + block.channel + i) * in.length + begin;
    const float skip = in.d == nullptr ? 0.0f : in.d[block.channel + i];
    for (int64_t l = 0; l < count; ++l) {
      const int64_t e = l * kChannels + i;
      row[l] = in.d == nullptr ? tiles.y[e] : tiles.y[e] + skip * tiles.u[e];
    }
    if (in.z != nullptr) {
      WidenRow(in.z + at, count, gate);
      ForRow(count, [&](auto d, int64_t l) HWY_ATTR {
        const auto z = hn::LoadU(d, gate + l);
        hn::StoreU(hn::Mul(hn::LoadU(d, row + l), hn::Mul(z, Sigmoid(d, z))), d, row + l);
      });
    }
    NarrowRow(row, count, output + at);
  }
}

// The tasks are blocks of channels, one in each lane; the steps are sequential.
template <class T>
Status SelectiveScanCpu(const SelectiveScan& op, const Context& context, Tensor<const T, 3> u, Tensor<const T, 3> delta,
                        Tensor<const float, 2> A, Tensor<const T, 4> B, Tensor<const T, 4> C,
                        std::optional<Tensor<const float, 1>> D, std::optional<Tensor<const T, 3>> z,
                        std::optional<Tensor<const float, 1>> delta_bias,
                        std::optional<Tensor<const float, 3>> initial_state, Tensor<T, 3> output,
                        Tensor<float, 3> last_state) {
  const ScanInputs<T> in(op.delta_softplus, u, delta, A, B, C, D, z, delta_bias, initial_state);
  const int64_t blocks = in.batch * in.groups * in.blocks_of_group();
  const int64_t grain = GrainFor(static_cast<double>(in.length * (in.states + 2) * kChannels) * 0.5 + 100);
  const int64_t floats = ScanTiles<T>::Floats(in.states);
  const Scratch<float> memory = context.Allocate<float>(Context::NumTasks(blocks, grain) * floats);
  if (!memory) return Internal("out of memory: states of ", ToString(last_state.shape()));
  context.ParallelFor(blocks, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    ScanTiles<T> tiles(in, memory.data() + task * floats);
    for (int64_t index = begin; index < end; ++index) {
      const ScanBlock block = ScanBlock::Of(in, index);
      tiles.Start(block);
      for (int64_t l = 0; l < in.length; l += kSteps) {
        const int64_t count = std::min(kSteps, in.length - l);
        tiles.Load(block, l, count);
        tiles.Advance(block, l, count);
        StoreOutputs(in, block, tiles, l, count, output.data());
      }
      float* const last = last_state.data() + (block.n * in.dim + block.channel) * in.states;
      for (int64_t i = 0; i < block.count; ++i) {
        for (int64_t s = 0; s < in.states; ++s) last[i * in.states + s] = tiles.state[s * kChannels + i];
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SelectiveScan, SelectiveScanCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
