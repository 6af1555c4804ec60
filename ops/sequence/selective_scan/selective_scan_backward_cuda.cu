// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/cuda.h"
#include "ops/sequence/selective_scan/selective_scan_arrays_cuda.h"
#include "ops/sequence/selective_scan/selective_scan_backward.h"

namespace polyop {
namespace {

constexpr int kSteps = 32;  // steps of a piece; also the threads of a block that computes them

template <class T, int R>
using Gradient = std::optional<Tensor<T, R>>;

// Scratch. A cell is a state of a row.
struct ScanScratch {
  float* starts;  // [pieces][cells] states before each piece
  float* states;  // [kSteps + 1][cells] states before each step of a piece, and after the last
  float* grads;   // [kSteps][cells] gradients of the states after the steps of a piece
  float* next;    // [cells] gradients of the states before the piece
  float* rates;   // [cells] sums for the gradient of A
  float* skips;   // [rows] sums for the gradient of D
  float* biases;  // [rows] sums for the gradient of delta_bias
};

// The gradient of y at a step, before D and z.
template <class T>
struct OutputGradient {
  const T *grads, *z;
  int64_t length;

  POLYOP_HD float operator()(int64_t row, int64_t l) const {
    const float grad = ToFloat(grads[row * length + l]);
    if (z == nullptr) return grad;
    const float gate = ToFloat(z[row * length + l]);
    return grad * (gate / (1 + std::exp(-gate)));
  }
};

// Each thread scans a cell: the states before each piece.
template <class T>
Status FindStarts(const CudaContext& cuda, const ScanArrays<T>& in, int64_t rows, const float* grad_last_state,
                  const ScanScratch& scratch) {
  const int64_t cells = rows * in.states, states = in.states, pieces = BlocksFor(in.length, kSteps);
  const Divider by_states(states);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, rows, [=] POLYOP_DEVICE(int64_t row) {
    scratch.skips[row] = 0;
    scratch.biases[row] = 0;
  }));
  return ForEach(cuda, cells, [=] POLYOP_DEVICE(int64_t cell) {
    int64_t s;
    const int64_t row = by_states.Split(cell, &s), coefficients = in.Coefficients(row, s);
    const float rate = in.a[row % in.dim * states + s];
    float h = in.Initial(row, s);
    for (int64_t piece = 0; piece < pieces; ++piece) {
      scratch.starts[piece * cells + cell] = h;
      const int64_t first = piece * kSteps;
      if (piece + 1 == pieces) break;
      for (int64_t l = first; l < first + kSteps; ++l) {
        const float size = in.StepSize(row, l);
        h = std::exp(size * rate) * h + size * in.U(row, l) * ToFloat(in.b[coefficients + l]);
      }
    }
    scratch.next[cell] = grad_last_state[cell];
    scratch.rates[cell] = 0;
  });
}

// Each thread computes the states of a cell in a piece, and their gradients from the last step to the first.
template <class T>
Status ScanPiece(const CudaContext& cuda, const ScanArrays<T>& in, int64_t rows, const OutputGradient<T>& of_y,
                 int64_t piece, const ScanScratch& scratch) {
  const int64_t cells = rows * in.states, states = in.states, first = piece * kSteps;
  const int64_t count = std::min<int64_t>(kSteps, in.length - first);
  const Divider by_states(states);
  return ForEach(cuda, cells, [=] POLYOP_DEVICE(int64_t cell) {
    int64_t s;
    const int64_t row = by_states.Split(cell, &s), coefficients = in.Coefficients(row, s) + first;
    const float rate = in.a[row % in.dim * states + s];
    float h = scratch.starts[piece * cells + cell];
    scratch.states[cell] = h;
    for (int64_t i = 0; i < count; ++i) {
      const float size = in.StepSize(row, first + i);
      h = std::exp(size * rate) * h + size * in.U(row, first + i) * ToFloat(in.b[coefficients + i]);
      scratch.states[(i + 1) * cells + cell] = h;
    }
    float of_state = scratch.next[cell], of_rate = 0;
    for (int64_t i = count; i-- > 0;) {
      const float size = in.StepSize(row, first + i), decay = std::exp(size * rate);
      of_state += of_y(row, first + i) * ToFloat(in.c[coefficients + i]);
      scratch.grads[i * cells + cell] = of_state;
      of_rate += of_state * decay * size * scratch.states[i * cells + cell];
      of_state *= decay;
    }
    scratch.next[cell] = of_state;
    scratch.rates[cell] += of_rate;
  });
}

// Gradients of the tensors [batch, dim, length]. Those that are not requested are null.
template <class T>
struct StepGradients {
  const T* output;
  T *u, *delta, *z;
};

// Each block computes a row of a piece, and each of its threads a step: sums over the states.
template <class T>
Status SumOverStates(const CudaContext& cuda, const ScanArrays<T>& in, int64_t rows, const OutputGradient<T>& of_y,
                     const StepGradients<T>& to, int64_t piece, const ScanScratch& scratch) {
  const int64_t cells = rows * in.states, states = in.states, first = piece * kSteps;
  const int64_t count = std::min<int64_t>(kSteps, in.length - first);
  return ForBlocks<kSteps>(cuda, rows, kSteps, 2 * kSteps * 4, [=] POLYOP_DEVICE(Block& block) {
    float *const skips = block.Shared<float>(kSteps), *const biases = block.Shared<float>(kSteps);
    const int64_t row = block.index, channel = row % in.dim;
    block.ForThreads([&](int t) {
      skips[t] = biases[t] = 0;
      if (t >= count) return;
      const int64_t l = first + t, at = row * in.length + l;
      const float size = in.StepSize(row, l), x = in.U(row, l), grad = of_y(row, l);
      float of_u = in.d == nullptr ? 0 : grad * in.d[channel], of_size = 0, y = in.d == nullptr ? 0 : in.d[channel] * x;
      for (int64_t s = 0; s < states; ++s) {
        const int64_t cell = t * cells + row * states + s, coefficient = in.Coefficients(row, s) + l;
        const float of_state = scratch.grads[cell], rate = in.a[channel * states + s], b = ToFloat(in.b[coefficient]);
        of_u += of_state * size * b;
        of_size += of_state * (x * b + std::exp(size * rate) * rate * scratch.states[cell]);
        y += scratch.states[cell + cells] * ToFloat(in.c[coefficient]);
      }
      of_size *= in.StepSlope(row, l);
      skips[t] = grad * x;
      biases[t] = of_size;
      if (to.u != nullptr) to.u[at] = FromFloat<T>(of_u);
      if (to.delta != nullptr) to.delta[at] = FromFloat<T>(of_size);
      if (to.z != nullptr) {
        const float gate = ToFloat(in.z[at]), sigmoid = 1 / (1 + std::exp(-gate));
        to.z[at] = FromFloat<T>(ToFloat(to.output[at]) * y * sigmoid * (1 + gate * (1 - sigmoid)));
      }
    });
    block.ForThreads([&](int t) {
      if (t > 1) return;
      const float* const values = t == 0 ? skips : biases;
      float sum = 0;
      for (int i = 0; i < kSteps; ++i) sum += values[i];
      (t == 0 ? scratch.skips : scratch.biases)[row] += sum;
    });
  });
}

struct PairOfSums {
  float b = 0, c = 0;
  POLYOP_HD PairOfSums operator+(const PairOfSums& other) const { return {b + other.b, c + other.c}; }
};

// Each block computes an element of the gradients of B and C: sums over the channels of its group.
template <class T>
Status SumOverChannels(const CudaContext& cuda, const ScanArrays<T>& in, int64_t rows, const OutputGradient<T>& of_y,
                       T* grad_b, T* grad_c, int64_t piece, const ScanScratch& scratch) {
  const int64_t cells = rows * in.states, states = in.states, first = piece * kSteps;
  const int64_t count = std::min<int64_t>(kSteps, in.length - first), channels = in.groups > 0 ? in.dim / in.groups : 0;
  const Divider by_states(states), by_count(count), by_groups(in.groups);
  return SumByBlocks<PairOfSums>(
      cuda, in.batch * in.groups * states * count, channels,
      [=] POLYOP_DEVICE(int64_t element, int64_t c) {
        int64_t i, s, g;
        const int64_t n = by_groups.Split(by_states.Split(by_count.Split(element, &i), &s), &g);
        const int64_t row = n * in.dim + g * channels + c, cell = i * cells + row * states + s, l = first + i;
        return PairOfSums{scratch.grads[cell] * in.StepSize(row, l) * in.U(row, l),
                          of_y(row, l) * scratch.states[cell + cells]};
      },
      [=] POLYOP_DEVICE(int64_t element, const PairOfSums& sums) {
        int64_t i;
        const int64_t at = by_count.Split(element, &i) * in.length + first + i;
        if (grad_b != nullptr) grad_b[at] = FromFloat<T>(sums.b);
        if (grad_c != nullptr) grad_c[at] = FromFloat<T>(sums.c);
      });
}

// Sets to[i] to the sum of from[n * count + i] over the batch, if it is requested.
Status SumOverBatch(const CudaContext& cuda, const float* from, int64_t batch, int64_t count, float* to) {
  if (to == nullptr) return Status::Ok();
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    float sum = 0;
    for (int64_t n = 0; n < batch; ++n) sum += from[n * count + i];
    to[i] = sum;
  });
}

// Computes the states before each piece of steps, then one piece after the other, from the last to the first. All sums
// are in a fixed order.
template <class T>
Status SelectiveScanBackwardCuda(const SelectiveScanBackward& op, const CudaContext& cuda,
                                 Tensor<const T, 3> grad_output, Tensor<const float, 3> grad_last_state,
                                 Tensor<const T, 3> u, Tensor<const T, 3> delta, Tensor<const float, 2> A,
                                 Tensor<const T, 4> B, Tensor<const T, 4> C, std::optional<Tensor<const float, 1>> D,
                                 std::optional<Tensor<const T, 3>> z, std::optional<Tensor<const float, 1>> delta_bias,
                                 std::optional<Tensor<const float, 3>> initial_state, Gradient<T, 3> grad_u,
                                 Gradient<T, 3> grad_delta, Gradient<float, 2> grad_A, Gradient<T, 4> grad_B,
                                 Gradient<T, 4> grad_C, Gradient<float, 1> grad_D, Gradient<T, 3> grad_z,
                                 Gradient<float, 1> grad_delta_bias, Gradient<float, 3> grad_initial_state) {
  const ScanArrays<T> in(op.delta_softplus, u, delta, A, B, C, D, z, delta_bias, initial_state);
  const int64_t rows = in.batch * in.dim, cells = rows * in.states, pieces = BlocksFor(in.length, kSteps);
  ScanScratch scratch{};
  scratch.starts = cuda.Allocate<float>(pieces * cells);
  scratch.states = cuda.Allocate<float>((kSteps + 1) * cells);
  scratch.grads = cuda.Allocate<float>(kSteps * cells);
  scratch.next = cuda.Allocate<float>(cells);
  scratch.rates = cuda.Allocate<float>(cells);
  scratch.skips = cuda.Allocate<float>(rows);
  scratch.biases = cuda.Allocate<float>(rows);
  const OutputGradient<T> of_y{grad_output.data(), in.z, in.length};
  const StepGradients<T> to{grad_output.data(), DataOf(grad_u), DataOf(grad_delta),
                            in.z == nullptr ? nullptr : DataOf(grad_z)};
  POLYOP_RETURN_IF_ERROR(FindStarts(cuda, in, rows, grad_last_state.data(), scratch));
  for (int64_t piece = pieces; piece-- > 0;) {
    POLYOP_RETURN_IF_ERROR(ScanPiece(cuda, in, rows, of_y, piece, scratch));
    POLYOP_RETURN_IF_ERROR(SumOverStates(cuda, in, rows, of_y, to, piece, scratch));
    if (grad_B || grad_C) {
      POLYOP_RETURN_IF_ERROR(SumOverChannels(cuda, in, rows, of_y, DataOf(grad_B), DataOf(grad_C), piece, scratch));
    }
  }
  if (grad_z && in.z == nullptr) {
    T* const zeros = grad_z->data();
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, grad_z->size(), [=] POLYOP_DEVICE(int64_t i) { zeros[i] = FromFloat<T>(0); }));
  }
  POLYOP_RETURN_IF_ERROR(SumOverBatch(cuda, scratch.rates, in.batch, in.dim * in.states, DataOf(grad_A)));
  POLYOP_RETURN_IF_ERROR(SumOverBatch(cuda, scratch.skips, in.batch, in.dim, DataOf(grad_D)));
  POLYOP_RETURN_IF_ERROR(SumOverBatch(cuda, scratch.biases, in.batch, in.dim, DataOf(grad_delta_bias)));
  return SumOverBatch(cuda, scratch.next, 1, cells, DataOf(grad_initial_state));
}

POLYOP_CUDA_KERNELS(SelectiveScanBackward, SelectiveScanBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
