#include <type_traits>

#include "kernels/cuda/cuda.h"
#include "ops/dft/dft.h"

namespace polyop {
namespace {

template <class R>
struct ComplexNumber {
  R real, imaginary;
};

// Computes one radix of a transform of many lines by Stockham's algorithm, whose results are in order. `inner` elements
// are between neighbours of a line. Each result is a sum of `radix` elements times roots of unity.
template <class R>
Status TransformRadix(const CudaContext& cuda, const ComplexNumber<R>* from, ComplexNumber<R>* to,
                      const ComplexNumber<R>* roots, int64_t total, int64_t length, int64_t inner, int64_t done,
                      int64_t radix) {
  const int64_t left = length / done, part = left / radix;
  return ForEach(cuda, total, [=] POLYOP_DEVICE(int64_t i) {
    const int64_t column = i % inner, at = i / inner % length, line = i / (inner * length) * length;
    const int64_t q = at % done, k = at / done % radix, p = at / (done * radix);
    ComplexNumber<R> sum{0, 0};
    for (int64_t j = 0; j < radix; ++j) {
      const int64_t position = p + part * j;
      const ComplexNumber<R> x = from[(line + q + done * position) * inner + column];
      const ComplexNumber<R> w = roots[position * k % left * done];
      sum.real += x.real * w.real - x.imaginary * w.imaginary;
      sum.imaginary += x.real * w.imaginary + x.imaginary * w.real;
    }
    to[i] = sum;
  });
}

// Transforms a dimension. Leaves the result in `*from`, and exchanges both if necessary.
template <class R>
Status TransformAxis(const CudaContext& cuda, ComplexNumber<R>** from, ComplexNumber<R>** other,
                     ComplexNumber<R>* roots, int64_t total, int64_t length, int64_t inner, double sign) {
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, length, [=] POLYOP_DEVICE(int64_t k) {
    const double angle = sign * 6.283185307179586476925 * static_cast<double>(k) / static_cast<double>(length);
    roots[k] = {static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle))};
  }));
  int64_t done = 1;
  for (int64_t radix = 2; done < length; ++radix) {
    if (radix * radix > length / done) radix = length / done;  // the rest is a prime number
    while (length / done % radix == 0) {
      POLYOP_RETURN_IF_ERROR(TransformRadix(cuda, *from, *other, roots, total, length, inner, done, radix));
      std::swap(*from, *other);
      done *= radix;
    }
  }
  return Status::Ok();
}

template <class T, class R>
POLYOP_HD T DftElement(R value) {
  if constexpr (std::is_same_v<T, R>) {
    return value;
  } else {
    return FromFloat<T>(value);
  }
}

template <class T>
Status DftCuda(const Dft& op, const CudaContext& cuda, Tensor<const T, kAnyRank> signal, Tensor<T, kAnyRank> output) {
  using R = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const DftExtents extents = DftExtents::Of(op, signal.shape(), output.shape());
  const std::array<int64_t, 3> whole = extents.Whole(op);
  const int64_t given_last = extents.input[2], last = whole[2], kept = extents.output[2], parts = extents.parts,
                per_batch = whole[0] * whole[1] * last, total = extents.batches * per_batch,
                written_parts = output.size() / (extents.batches * extents.outputs());
  auto* from = cuda.Allocate<ComplexNumber<R>>(total);
  auto* other = cuda.Allocate<ComplexNumber<R>>(total);
  auto* const roots = cuda.Allocate<ComplexNumber<R>>(std::max({whole[0], whole[1], whole[2]}));
  auto* const finite = cuda.Allocate<R>(extents.batches);
  const int64_t batch_inputs = extents.inputs() * parts;
  const double sign = op.inverse != 0 ? 1 : -1;
  // A NaN in the sum of 0 times each input.
  POLYOP_RETURN_IF_ERROR(ForBlocks(cuda, extents.batches, kThreadsPerBlock, kThreadsPerBlock * sizeof(R) + 16,
                                   [=] POLYOP_DEVICE(Block& block) {
                                     R* const sums = block.Shared<R>(kThreadsPerBlock);
                                     block.ForThreads([&](int t) {
                                       sums[t] = 0;
                                       for (int64_t i = t; i < batch_inputs; i += kThreadsPerBlock) {
                                         const T x = signal[block.index * batch_inputs + i];
                                         if constexpr (std::is_same_v<T, double>)
                                           sums[t] += 0 * x;
                                         else
                                           sums[t] += 0 * ToFloat(x);
                                       }
                                     });
                                     block.ForThreads([&](int t) {
                                       for (int i = 1; t == 0 && i < kThreadsPerBlock; ++i) sums[0] += sums[i];
                                       if (t == 0) finite[block.index] = sums[0];
                                     });
                                   }));
  ComplexNumber<R>* const loaded = from;
  // Fills the missing half with zeros, which the transform of the other dimensions keeps.
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, total, [=] POLYOP_DEVICE(int64_t i) {
    const int64_t at = i % last, line = i / last;
    ComplexNumber<R> x{0, 0};
    if (at < given_last) {
      const T* const element = signal.data() + (line * given_last + at) * parts;
      if constexpr (std::is_same_v<T, double>)
        x = {element[0], parts == 2 ? element[1] : 0};
      else
        x = {ToFloat(element[0]), parts == 2 ? ToFloat(element[1]) : 0};
    }
    loaded[i] = x;
  }));
  POLYOP_RETURN_IF_ERROR(TransformAxis(cuda, &from, &other, roots, total, whole[0], whole[1] * whole[2], sign));
  POLYOP_RETURN_IF_ERROR(TransformAxis(cuda, &from, &other, roots, total, whole[1], whole[2], sign));
  if (given_last < last) {
    ComplexNumber<R>* const halves = from;
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, total, [=] POLYOP_DEVICE(int64_t i) {
      const int64_t at = i % last;
      if (at < given_last) return;
      const ComplexNumber<R> x = halves[i - at + last - at];
      halves[i] = {x.real, -x.imaginary};
    }));
  }
  POLYOP_RETURN_IF_ERROR(TransformAxis(cuda, &from, &other, roots, total, whole[2], int64_t{1}, sign));
  const ComplexNumber<R>* const result = from;
  const R scale = static_cast<R>(extents.Scale(op));
  const int64_t batch_outputs = extents.outputs();
  return ForEach(cuda, output.size(), [=] POLYOP_DEVICE(int64_t i) {
    const int64_t element = i / written_parts;
    const ComplexNumber<R> x = result[element / kept * last + element % kept];
    const R value = (i % written_parts == 0 ? x.real : x.imaginary) * scale + finite[element / batch_outputs];
    output[i] = DftElement<T>(value);
  });
}

POLYOP_CUDA_KERNELS(Dft, DftCuda, float, double, Half, BFloat16);

}  // namespace
}  // namespace polyop
