// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/atomic_add.h"
#include "kernels/cuda/cuda.h"
#include "ops/sequence/dft/dft.h"

namespace polyop {
namespace {

template <class R>
struct ComplexNumber {
  R real, imaginary;
};

template <class R>
POLYOP_HD ComplexNumber<R> MultiplyComplex(const ComplexNumber<R>& x, const ComplexNumber<R>& y) {
  return {x.real * y.real - x.imaginary * y.imaginary, x.real * y.imaginary + x.imaginary * y.real};
}

// Computes one radix of a transform of many lines by Stockham's algorithm, whose results are in order. `inner` elements
// are between neighbours of a line. Each result is a sum of `radix` elements times roots of unity.
template <class R>
Status TransformRadix(const CudaContext& cuda, const ComplexNumber<R>* from, ComplexNumber<R>* to,
                      const ComplexNumber<R>* roots, int64_t total, int64_t length, int64_t inner, int64_t done,
                      int64_t radix) {
  const int64_t left = length / done, part = left / radix;
  const Divider by_inner(inner), by_length(length), by_done(done), by_radix(radix), by_left(left);
  return ForEach(cuda, total, [=] POLYOP_DEVICE(int64_t i) {
    int64_t column, at, q, k;
    const int64_t line = by_length.Split(by_inner.Split(i, &column), &at) * length;
    const int64_t p = by_radix.Split(by_done.Split(at, &q), &k);
    int64_t root, step;  // of the elements' exponents, modulo `left`
    by_left.Split(p * k, &root);
    by_left.Split(part * k, &step);
    ComplexNumber<R> sum{0, 0};
    for (int64_t j = 0; j < radix; ++j) {
      const ComplexNumber<R> x = from[(line + q + done * (p + part * j)) * inner + column];
      const ComplexNumber<R> product = MultiplyComplex(x, roots[root * done]);
      sum.real += product.real;
      sum.imaginary += product.imaginary;
      root += step;
      if (root >= left) root -= left;
    }
    to[i] = sum;
  });
}

// Sets roots[k] to the k-th power of the root of unity of order `length`.
template <class R>
Status FindRoots(const CudaContext& cuda, int64_t length, double sign, ComplexNumber<R>* roots) {
  return ForEach(cuda, length, [=] POLYOP_DEVICE(int64_t k) {
    const double angle = sign * 6.283185307179586476925 * static_cast<double>(k) / static_cast<double>(length);
    roots[k] = {static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle))};
  });
}

// Transforms a dimension. Leaves the result in `*from`, and exchanges both if necessary.
template <class R>
Status TransformAxis(const CudaContext& cuda, ComplexNumber<R>** from, ComplexNumber<R>** other,
                     ComplexNumber<R>* roots, int64_t total, int64_t length, int64_t inner, double sign) {
  if (length == 1) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(FindRoots(cuda, length, sign, roots));
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

// How the lines of a one-dimensional transform are computed in shared memory: `lines` per block, with `threads` threads
// each, by radices of 2 to 5.
struct LinePlan {
  static constexpr int kElements = 16;  // that a thread has in registers
  static constexpr int kThreads = 256;
  static constexpr int kMaxBlock = 512;

  int length = 0, lines = 0, threads = 0, radices = 0;
  int radix[12] = {};

  // Returns whether there is a plan.
  bool Find(int64_t line_length, int64_t element_bytes) {
    constexpr int64_t kMaxBytes = 32 * 1024;
    if (line_length < 2 || line_length * element_bytes > kMaxBytes) return false;
    length = static_cast<int>(line_length);
    int left = length;
    for (const int factor : {4, 2, 3, 5}) {
      for (; left % factor == 0; left /= factor) radix[radices++] = factor;
    }
    // Radices of 3 and 5 use 15 elements.
    threads = static_cast<int>(BlocksFor(length, kElements - 1));
    lines = std::max(1, std::min(kThreads / threads, static_cast<int>(kMaxBytes / (line_length * element_bytes))));
    return left == 1;
  }
  int block_threads() const { return static_cast<int>(BlocksFor(int64_t{lines} * threads, 32)) * 32; }
};

template <class R>
struct LineElements {
  ComplexNumber<R> of[LinePlan::kElements];
};

// Replaces x[0, kRadix) by its transform. `roots` are the powers of the root of unity of order kRadix.
template <int kRadix, class R>
POLYOP_HD void TransformFew(const ComplexNumber<R>* roots, ComplexNumber<R>* x) {
  if constexpr (kRadix == 4) {
    const ComplexNumber<R> a{x[0].real + x[2].real, x[0].imaginary + x[2].imaginary},
        b{x[0].real - x[2].real, x[0].imaginary - x[2].imaginary},
        c{x[1].real + x[3].real, x[1].imaginary + x[3].imaginary},
        d{x[1].real - x[3].real, x[1].imaginary - x[3].imaginary};
    const R sign = roots[1].imaginary;  // -1 or 1: d times the root, which is imaginary
    x[0] = {a.real + c.real, a.imaginary + c.imaginary};
    x[1] = {b.real - sign * d.imaginary, b.imaginary + sign * d.real};
    x[2] = {a.real - c.real, a.imaginary - c.imaginary};
    x[3] = {b.real + sign * d.imaginary, b.imaginary - sign * d.real};
  } else {
    ComplexNumber<R> sums[kRadix];
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int k = 0; k < kRadix; ++k) {
      sums[k] = x[0];
#ifdef __CUDACC__
#pragma unroll
#endif
      for (int j = 1; j < kRadix; ++j) {
        const ComplexNumber<R> product = MultiplyComplex(x[j], roots[j * k % kRadix]);
        sums[k].real += product.real;
        sums[k].imaginary += product.imaginary;
      }
    }
    for (int k = 0; k < kRadix; ++k) x[k] = sums[k];
  }
}

// Computes one radix of the lines in shared memory: reads all elements of a thread, waits, and writes the results.
template <int kRadix, class R>
POLYOP_DEVICE void TransformLines(Block& block, const LinePlan& plan, int lines, const ComplexNumber<R>* roots,
                                  int done, ComplexNumber<R>* data, Block::Local<LineElements<R>>& elements) {
  constexpr int kTransforms = LinePlan::kElements / kRadix;
  const int part = plan.length / kRadix;
  block.ForThreads([&](int t) {
    const int line = t / plan.threads, first = t - line * plan.threads;
    if (line >= lines) return;
    ComplexNumber<R> of_radix[kRadix];
    for (int k = 0; k < kRadix; ++k) of_radix[k] = roots[k * part];
    if constexpr (kRadix == 4) of_radix[1].imaginary = of_radix[1].imaginary > 0 ? 1 : -1;
    const ComplexNumber<R>* const from = data + line * plan.length;
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int n = 0; n < kTransforms; ++n) {
      const int b = first + n * plan.threads;
      if (b >= part) break;
      ComplexNumber<R>* const x = elements[t].of + n * kRadix;
      for (int j = 0; j < kRadix; ++j) x[j] = from[b + part * j];
      TransformFew<kRadix>(of_radix, x);
      const int p = b / done;
      for (int k = 1; k < kRadix; ++k) x[k] = MultiplyComplex(x[k], roots[p * k * done]);
    }
  });
  block.ForThreads([&](int t) {
    const int line = t / plan.threads, first = t - line * plan.threads;
    if (line >= lines) return;
    ComplexNumber<R>* const to = data + line * plan.length;
#ifdef __CUDACC__
#pragma unroll
#endif
    for (int n = 0; n < kTransforms; ++n) {
      const int b = first + n * plan.threads;
      if (b >= part) break;
      const int p = b / done, q = b - p * done;
      for (int k = 0; k < kRadix; ++k) to[q + done * (k + kRadix * p)] = elements[t].of[n * kRadix + k];
    }
  });
}

template <class R, class T>
POLYOP_HD R DftReal(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return ToFloat(value);
  }
}

// Transforms lines in shared memory, from the signal to the output.
template <class T, class R>
Status TransformInBlocks(const CudaContext& cuda, const LinePlan& plan, const DftExtents& extents, double sign, R scale,
                         const T* signal, int written_parts, T* output) {
  constexpr size_t kLast = DftExtents::kLast;
  const int given = static_cast<int>(extents.input[kLast]), kept = static_cast<int>(extents.output[kLast]),
            parts = static_cast<int>(extents.parts);
  const int64_t all_lines = extents.batches;
  auto* const roots = cuda.Allocate<ComplexNumber<R>>(plan.length);
  POLYOP_RETURN_IF_ERROR(FindRoots(cuda, plan.length, sign, roots));
  const int64_t bytes =
      int64_t{plan.lines} * plan.length * static_cast<int64_t>(sizeof(ComplexNumber<R>)) + int64_t{plan.lines} * 4 + 32;
  return ForBlocks<LinePlan::kMaxBlock>(
      cuda, BlocksFor(all_lines, plan.lines), plan.block_threads(), bytes, [=] POLYOP_DEVICE(Block& block) {
        auto* const data = block.Shared<ComplexNumber<R>>(plan.lines * plan.length);
        float* const not_finite = block.Shared<float>(plan.lines);
        Block::Local<LineElements<R>> elements(block);
        const int64_t first_line = block.index * plan.lines, lines_left = all_lines - first_line;
        const int lines = lines_left < plan.lines ? static_cast<int>(lines_left) : plan.lines;
        const int length = plan.length, threads = block.threads();
        const T* const from = signal + first_line * given * parts;
        T* const to = output + first_line * kept * written_parts;
        block.ForThreads([&](int t) {
          for (int line = t; line < plan.lines; line += threads) not_finite[line] = 0;
        });
        block.ForThreads([&](int t) {
          for (int i = t; i < lines * length; i += threads) {
            const int line = i / length, at = i - line * length;
            // The missing half of a spectrum has the conjugates of the other half.
            const T* const element = from + (line * given + (at < given ? at : length - at)) * parts;
            ComplexNumber<R> x{DftReal<R>(element[0]), parts == 2 ? DftReal<R>(element[1]) : 0};
            const R zero = 0 * x.real + 0 * x.imaginary;
            if (zero != zero) AtomicAdd(&not_finite[line], 1.0f);
            if (at >= given) x.imaginary = -x.imaginary;
            data[i] = x;
          }
        });
        int done = 1;
        for (int n = 0; n < plan.radices; ++n) {
          switch (plan.radix[n]) {
            case 2: TransformLines<2>(block, plan, lines, roots, done, data, elements); break;
            case 3: TransformLines<3>(block, plan, lines, roots, done, data, elements); break;
            case 4: TransformLines<4>(block, plan, lines, roots, done, data, elements); break;
            default: TransformLines<5>(block, plan, lines, roots, done, data, elements);
          }
          done *= plan.radix[n];
        }
        block.ForThreads([&](int t) {
          for (int i = t; i < lines * kept; i += threads) {
            const int line = i / kept;
            const ComplexNumber<R> x = data[line * length + i - line * kept];
            const R added = not_finite[line] > 0 ? static_cast<R>(NAN) : R{0};
            to[i * written_parts] = DftElement<T>(x.real * scale + added);
            if (written_parts == 2) to[i * 2 + 1] = DftElement<T>(x.imaginary * scale + added);
          }
        });
      });
}

template <class T>
Status DftCuda(const Dft& op, const CudaContext& cuda, Tensor<const T, kAnyRank> signal, Tensor<T, kAnyRank> output) {
  using R = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const DftExtents extents = DftExtents::Of(op, signal.shape(), output.shape());
  constexpr size_t kLast = DftExtents::kLast;
  const DftExtents::Extents whole = extents.Whole(op);
  const int64_t given_last = extents.input[kLast], last = whole[kLast], kept = extents.output[kLast],
                parts = extents.parts, per_batch = DftExtents::Product(whole), total = extents.batches * per_batch,
                written_parts = output.size() / (extents.batches * extents.outputs());
  const double sign = op.inverse != 0 ? 1 : -1;
  LinePlan plan;
  if (op.dimensions == 1 && plan.Find(last, sizeof(ComplexNumber<R>))) {
    return TransformInBlocks<T, R>(cuda, plan, extents, sign, static_cast<R>(extents.Scale(op)), signal.data(),
                                   static_cast<int>(written_parts), output.data());
  }
  auto* from = cuda.Allocate<ComplexNumber<R>>(total);
  auto* other = cuda.Allocate<ComplexNumber<R>>(total);
  auto* const roots = cuda.Allocate<ComplexNumber<R>>(*std::max_element(whole.begin(), whole.end()));
  auto* const finite = cuda.Allocate<R>(extents.batches);
  const int64_t batch_inputs = extents.inputs() * parts;
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
  int64_t step = per_batch;
  for (size_t d = 0; d < kLast; ++d) {
    step /= whole[d];
    if (whole[d] > 1) {
      POLYOP_RETURN_IF_ERROR(TransformAxis(cuda, &from, &other, roots, total, whole[d], step, sign));
    }
  }
  if (given_last < last) {
    ComplexNumber<R>* const halves = from;
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, total, [=] POLYOP_DEVICE(int64_t i) {
      const int64_t at = i % last;
      if (at < given_last) return;
      const ComplexNumber<R> x = halves[i - at + last - at];
      halves[i] = {x.real, -x.imaginary};
    }));
  }
  POLYOP_RETURN_IF_ERROR(TransformAxis(cuda, &from, &other, roots, total, last, int64_t{1}, sign));
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
