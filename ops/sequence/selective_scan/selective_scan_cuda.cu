// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/sequence/selective_scan/selective_scan.h"
#include "ops/sequence/selective_scan/selective_scan_arrays_cuda.h"

namespace polyop {
namespace {

// h -> a * h + b
struct Recurrence {
  float a, b;
  POLYOP_HD Recurrence Then(const Recurrence& next) const { return {next.a * a, next.a * b + next.b}; }
};

// Each thread scans a channel. For few steps, such as one of a model that generates.
template <class T>
Status ScanShort(const CudaContext& cuda, const ScanArrays<T>& in, int64_t rows, T* output, float* states) {
  return ForEach(cuda, rows, [=] POLYOP_DEVICE(int64_t row) {
    float* const h = states + row * in.states;
    for (int64_t s = 0; s < in.states; ++s) h[s] = in.Initial(row, s);
    for (int64_t l = 0; l < in.length; ++l) {
      const float size = in.StepSize(row, l), x = size * in.U(row, l);
      float y = 0;
      for (int64_t s = 0; s < in.states; ++s) {
        const int64_t at = in.Coefficients(row, s) + l;
        h[s] = std::exp(size * in.a[row % in.dim * in.states + s]) * h[s] + x * ToFloat(in.b[at]);
        y += h[s] * ToFloat(in.c[at]);
      }
      output[row * in.length + l] = FromFloat<T>(in.Output(row, l, y));
    }
  });
}

constexpr int kScanThreads = 128, kItems = 4;

// Each block scans a channel, kScanThreads * kItems steps at a time. Steps are composed pairwise (Hillis and Steele,
// Data Parallel Algorithms, 1986). The states between the pieces are in `states`.
template <class T>
Status ScanLong(const CudaContext& cuda, const ScanArrays<T>& in, int64_t rows, T* output, float* states) {
  struct Steps {
    float size[kItems], x[kItems], y[kItems];
    Recurrence each[kItems];
    float last;
  };
  return ForBlocks<kScanThreads>(
      cuda, rows, kScanThreads, 2 * kScanThreads * static_cast<int64_t>(sizeof(Recurrence)),
      [=] POLYOP_DEVICE(Block& block) {
        Recurrence* const shared[2] = {block.Shared<Recurrence>(kScanThreads), block.Shared<Recurrence>(kScanThreads)};
        Block::Local<Steps> local(block);
        const int64_t row = block.index, channel = row % in.dim;
        float* const h = states + row * in.states;
        block.ForThreads([&](int t) {
          for (int64_t s = t; s < in.states; s += kScanThreads) h[s] = in.Initial(row, s);
        });
        for (int64_t first = 0; first < in.length; first += kScanThreads * kItems) {
          block.ForThreads([&](int t) {
            for (int i = 0; i < kItems; ++i) {
              const int64_t l = first + t * kItems + i;
              local[t].size[i] = l < in.length ? in.StepSize(row, l) : 0;
              local[t].x[i] = l < in.length ? local[t].size[i] * in.U(row, l) : 0;
              local[t].y[i] = 0;
            }
          });
          for (int64_t s = 0; s < in.states; ++s) {
            const int64_t coefficients = in.Coefficients(row, s) + first;
            const float rate = in.a[channel * in.states + s];
            block.ForThreads([&](int t) {
              Recurrence all = {1, 0};
              for (int i = 0; i < kItems; ++i) {
                const int64_t l = t * kItems + i;
                const bool inside = first + l < in.length;  // later steps change nothing
                local[t].each[i] = {inside ? std::exp(local[t].size[i] * rate) : 1.0f,
                                    inside ? local[t].x[i] * ToFloat(in.b[coefficients + l]) : 0.0f};
                all = i == 0 ? local[t].each[i] : all.Then(local[t].each[i]);
              }
              shared[0][t] = all;
            });
            int from = 0;
            for (int step = 1; step < kScanThreads; step *= 2, from = 1 - from) {
              block.ForThreads([&](int t) {
                shared[1 - from][t] = t >= step ? shared[from][t - step].Then(shared[from][t]) : shared[from][t];
              });
            }
            block.ForThreads([&](int t) {
              float state = t == 0 ? h[s] : shared[from][t - 1].a * h[s] + shared[from][t - 1].b;
              for (int i = 0; i < kItems; ++i) {
                const int64_t l = t * kItems + i;
                state = local[t].each[i].a * state + local[t].each[i].b;
                if (first + l < in.length) local[t].y[i] += state * ToFloat(in.c[coefficients + l]);
              }
              local[t].last = state;
            });
            block.ForThreads([&](int t) {
              if (t == kScanThreads - 1) h[s] = local[t].last;
            });
          }
          block.ForThreads([&](int t) {
            for (int i = 0; i < kItems; ++i) {
              const int64_t l = first + t * kItems + i;
              if (l < in.length) output[row * in.length + l] = FromFloat<T>(in.Output(row, l, local[t].y[i]));
            }
          });
        }
      });
}

template <class T>
Status SelectiveScanCuda(const SelectiveScan& op, const CudaContext& cuda, Tensor<const T, 3> u,
                         Tensor<const T, 3> delta, Tensor<const float, 2> A, Tensor<const T, 4> B, Tensor<const T, 4> C,
                         std::optional<Tensor<const float, 1>> D, std::optional<Tensor<const T, 3>> z,
                         std::optional<Tensor<const float, 1>> delta_bias,
                         std::optional<Tensor<const float, 3>> initial_state, Tensor<T, 3> output,
                         Tensor<float, 3> last_state) {
  const ScanArrays<T> in(op.delta_softplus, u, delta, A, B, C, D, z, delta_bias, initial_state);
  constexpr int64_t kShort = 16;
  const int64_t rows = u.dim(0) * u.dim(1);
  if (in.length <= kShort) return ScanShort(cuda, in, rows, output.data(), last_state.data());
  return ScanLong(cuda, in, rows, output.data(), last_state.data());
}

POLYOP_CUDA_KERNELS(SelectiveScan, SelectiveScanCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
