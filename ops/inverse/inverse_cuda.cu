#include "kernels/cuda/cuda.h"
#include "ops/inverse/inverse.h"
#include "ops/inverse/inverse_rule.h"

namespace polyop {
namespace {

constexpr int kThreads = 128;

// One step of the elimination.
struct Step {
  double pivot;
  int64_t row;  // -1: no pivot
};

// Each thread block inverts one matrix in scratch memory, by Gauss-Jordan elimination in place. Decisions of a phase
// are in shared memory; without a pivot the later phases do nothing.
template <class T>
Status InverseCuda(const Inverse&, const CudaContext& cuda, Tensor<const T, kAnyRank> input,
                   Tensor<T, kAnyRank> output) {
  const int64_t size = input.dim(input.rank() - 1), count = size == 0 ? 0 : input.size() / (size * size),
                per_matrix = (size + 3) * size;
  double* const reals = cuda.Allocate<double>(count * per_matrix);
  int64_t* const rows = cuda.Allocate<int64_t>(count * size);
  const T* const from = input.data();
  T* const to = output.data();
  return ForBlocks(cuda, count, kThreads, 32, [=] POLYOP_DEVICE(Block& block) {
    const int64_t first = block.index * size * size;
    double* const matrix = reals + block.index * per_matrix;
    double *const row_scale = matrix + size * size, *const column_scale = row_scale + size,
                  *const factors = column_scale + size;
    int64_t* const swapped = rows + block.index * size;
    Step* const step = block.Shared<Step>(1);
    block.ForThreads([&](int t) {
      if (t == 0) step->row = 0;
      for (int64_t i = t; i < size; i += kThreads) {
        double largest = 0;
        for (int64_t j = 0; j < size; ++j) {
          largest = LargerMagnitude(largest, ToFloat(from[first + i * size + j]));
        }
        row_scale[i] = InverseScale(largest);
        for (int64_t j = 0; j < size; ++j) {
          matrix[i * size + j] = ToFloat(from[first + i * size + j]) * row_scale[i];
        }
      }
    });
    block.ForThreads([&](int t) {
      for (int64_t j = t; j < size; j += kThreads) {
        double largest = 0;
        for (int64_t i = 0; i < size; ++i) largest = LargerMagnitude(largest, matrix[i * size + j]);
        column_scale[j] = InverseScale(largest);
        for (int64_t i = 0; i < size; ++i) matrix[i * size + j] *= column_scale[j];
      }
    });
    for (int64_t k = 0; k < size; ++k) {
      block.ForThreads([&](int t) {
        if (t != 0 || step->row < 0) return;
        int64_t best = k;
        for (int64_t i = k + 1; i < size; ++i) {
          if (std::fabs(matrix[i * size + k]) > std::fabs(matrix[best * size + k])) best = i;
        }
        const double pivot = matrix[best * size + k];
        swapped[k] = best;
        *step = {pivot, IsPivot(pivot, size) ? best : -1};
      });
      block.ForThreads([&](int t) {
        if (step->row < 0) return;
        for (int64_t j = t; j < size; j += kThreads) {
          const double chosen = matrix[step->row * size + j];
          matrix[step->row * size + j] = matrix[k * size + j];
          matrix[k * size + j] = (j == k ? 1 : chosen) / step->pivot;
        }
      });
      block.ForThreads([&](int t) {
        if (step->row < 0) return;
        for (int64_t i = t; i < size; i += kThreads) {
          if (i == k) continue;
          factors[i] = matrix[i * size + k];
          matrix[i * size + k] = 0;
        }
      });
      block.ForThreads([&](int t) {
        if (step->row < 0) return;
        for (int64_t at = t; at < size * size; at += kThreads) {
          const int64_t i = at / size, j = at % size;
          if (i != k) matrix[at] -= factors[i] * matrix[k * size + j];
        }
      });
    }
    block.ForThreads([&](int t) {
      for (int64_t i = t; i < size; i += kThreads) {
        double* const row = matrix + i * size;
        for (int64_t k = size; k-- > 0 && step->row >= 0;) {
          const double other = row[swapped[k]];
          row[swapped[k]] = row[k];
          row[k] = other;
        }
        for (int64_t j = 0; j < size; ++j) {
          const double value = step->row >= 0 ? row[j] * column_scale[i] * row_scale[j] : NAN;
          to[first + i * size + j] = FromFloat<T>(static_cast<float>(value));
        }
      }
    });
  });
}

POLYOP_CUDA_KERNELS(Inverse, InverseCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
