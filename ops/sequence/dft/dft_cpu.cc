// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <exception>
#include <type_traits>

// What pocketfft includes, because it is included inside of a namespace.
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sequence/dft/dft_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose_square-inl.h"
#include "ops/sequence/dft/dft.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The library's vectors are those of the instruction set, whose macros GCC defines here. It aligns memory itself: its
// calls of aligned_alloc have sizes that are no multiples of the alignment, which C11 excludes.
#undef POCKETFFT_HDRONLY_H
#ifndef _LIBCPP_HAS_NO_ALIGNED_ALLOCATION
#define _LIBCPP_HAS_NO_ALIGNED_ALLOCATION  // NOLINT(bugprone-reserved-identifier)
#endif
#include "pocketfft_hdronly.h"
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#include "kernels/cpu/all_finite-inl.h"
#include "ops/sequence/dft/line_plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Several lines in the lanes of vectors, whose operations are those that the library's templates need.
template <class R>
struct LaneNumbers {
  using Tag = hn::CappedTag<R, 64 / sizeof(R)>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
  using Vector __attribute__((vector_size(kLanes * sizeof(R)))) = R;
};

// Copies `count` elements of each of as many lines as a vector has lanes into vectors. The lines are `stride` elements
// apart; those from `lines` on are copies of the last one.
template <class R>
void LinesToVectors(const R* from, int64_t stride, int64_t lines, int64_t count, R* to) {
  constexpr int kLanes = LaneNumbers<R>::kLanes;
  const typename LaneNumbers<R>::Tag d;
  const R* line[kLanes];
  for (int j = 0; j < kLanes; ++j) line[j] = from + std::min<int64_t>(j, lines - 1) * stride;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::Vec<decltype(d)> rows[kLanes];
    for (int j = 0; j < kLanes; ++j) rows[j] = hn::LoadU(d, line[j] + i);
    TransposeSquare(d, rows);
    for (int j = 0; j < kLanes; ++j) hn::StoreU(rows[j], d, to + (i + j) * kLanes);
  }
  for (; i < count; ++i) {
    for (int j = 0; j < kLanes; ++j) to[i * kLanes + j] = line[j][i];
  }
}

// The reverse.
template <class R>
void VectorsToLines(const R* from, int64_t count, int64_t stride, int64_t lines, R* to) {
  constexpr int kLanes = LaneNumbers<R>::kLanes;
  const typename LaneNumbers<R>::Tag d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::Vec<decltype(d)> rows[kLanes];
    for (int j = 0; j < kLanes; ++j) rows[j] = hn::LoadU(d, from + (i + j) * kLanes);
    TransposeSquare(d, rows);
    for (int j = 0; j < static_cast<int>(lines); ++j) hn::StoreU(rows[j], d, to + j * stride + i);
  }
  for (; i < count; ++i) {
    for (int64_t j = 0; j < lines; ++j) to[j * stride + i] = from[i * kLanes + j];
  }
}

// Returns the time of a transform in nanoseconds, about.
double TimeOf(int64_t elements) {
  const auto count = static_cast<double>(elements);
  return count * (1 + 0.2 * std::log2(count));
}

// Transforms of one layout for some batch elements, a dimension after the other.
template <class R>
class Transforms {
 public:
  // With a context, its threads share the lines of each dimension.
  Transforms(const Dft& op, const DftExtents& extents, const Context* context)
      : op_(op), extents_(extents), scale_(static_cast<R>(extents.Scale(op))), context_(context) {}

  // Requires: all input elements are finite. Throws if there is no memory.
  void Run(const R* from, int64_t count, R* to) const {
    const bool forward = op_.inverse == 0, onesided = op_.onesided != 0;
    const auto first = kLast + 1 - static_cast<size_t>(op_.dimensions);
    const Extents& in = extents_.input;
    const int64_t lines = count * (extents_.inputs() / in[kLast]);
    if (onesided && forward) {
      RealLines(from, lines, in[kLast], to);
      for (size_t d = kLast; d-- > first;) Across(to, extents_.output, count, d, 1, to);
    } else if (onesided) {
      Buffer spectrum(first < kLast ? static_cast<size_t>(2 * lines * in[kLast]) : 0);
      const R* half = from;
      R scale = scale_;
      for (size_t d = first; d < kLast; ++d) {
        Across(half, in, count, d, std::exchange(scale, R{1}), spectrum.data());
        half = spectrum.data();
      }
      HalfLines(half, lines, extents_.output[kLast], scale, to);
    } else if (extents_.parts == 1 && first < kLast) {
      Extents half = in;
      half[kLast] = in[kLast] / 2 + 1;
      Buffer spectrum(static_cast<size_t>(2 * lines * half[kLast]));
      RealLines(from, lines, in[kLast], spectrum.data());
      for (size_t d = kLast; d-- > first;) Across(spectrum.data(), half, count, d, 1, spectrum.data());
      CompleteLines(spectrum.data(), lines, first, to);
    } else {
      ComplexLines(from, lines, in[kLast], to);
      for (size_t d = kLast; d-- > first;) Across(to, in, count, d, 1, to);
    }
  }

 private:
  using Extents = DftExtents::Extents;
  static constexpr size_t kLast = DftExtents::kLast;
  using Vector = typename LaneNumbers<R>::Vector;
  using Complex = pocketfft::detail::cmplx<R>;
  using ComplexVector = pocketfft::detail::cmplx<Vector>;
  static constexpr int kLanes = LaneNumbers<R>::kLanes;

  // Aligned memory of numbers.
  class Buffer {
   public:
    explicit Buffer(size_t count) : vectors_((count + kLanes - 1) / kLanes * kLanes + 64 / sizeof(R)) {}
    R* data() {
      const auto address = reinterpret_cast<uintptr_t>(vectors_.data());
      return vectors_.data() + (64 - address % 64) % 64 / sizeof(R);
    }

   private:
    pocketfft::detail::arr<R> vectors_;
  };

  // Calls body(begin, end) for parts of [0, count), which begin at multiples of `step`. `nanoseconds` is the time of an
  // item. Throws if the body throws.
  template <class Body>
  void Divide(int64_t count, int64_t step, double nanoseconds, const Body& body) const {
    if (context_ == nullptr) return body(int64_t{0}, count);
    std::atomic<bool> failed = false;
    context_->ParallelFor((count + step - 1) / step, GrainFor(static_cast<double>(step) * nanoseconds),
                          [&](int64_t begin, int64_t end) {
                            try {
                              body(begin * step, std::min(end * step, count));
                            } catch (const std::exception&) {
                              failed = true;
                            }
                          });
    if (failed) throw std::bad_alloc();
  }

  // Returns whether lines of that many numbers are transformed in the lanes of vectors. This depends on their length
  // alone, because a compiler fuses other products and sums in lanes, so that last bits differ. Few lines leave lanes
  // unused, which takes up to four times as long for one line. Lanes of long lines exceed the caches.
  static constexpr bool InLanes(int64_t numbers) {
    constexpr int64_t kMaxBytes = 128 << 10;
    return numbers <= kMaxBytes / (kLanes * static_cast<int64_t>(sizeof(R)));
  }

  // Calls group(first, count) for lines that share the lanes of vectors if `in_lanes`, otherwise single(line).
  template <class Group, class Single>
  static void ForLines(bool in_lanes, int64_t lines, const Group& group, const Single& single) {
    for (int64_t line = 0; line < lines; line += in_lanes ? kLanes : 1) {
      if (in_lanes) {
        group(line, std::min<int64_t>(kLanes, lines - line));
      } else {
        single(line);
      }
    }
  }

  // Transforms real lines to the first half of their spectra.
  void RealLines(const R* from, int64_t lines, int64_t size, R* to) const {
    const int64_t stride = 2 * (size / 2 + 1);
    Divide(lines, kLanes, TimeOf(size), [&](int64_t begin, int64_t end) {
      SomeRealLines(from + begin * size, end - begin, size, to + begin * stride);
    });
  }
  void SomeRealLines(const R* from, int64_t lines, int64_t size, R* to) const {
    const int64_t stride = 2 * (size / 2 + 1);
    if (RealLinePlan<R>::Supports(size)) {
      const auto plan = pocketfft::detail::get_plan<RealLinePlan<R>>(static_cast<size_t>(size));
      Buffer work(static_cast<size_t>(plan->Numbers()));
      for (int64_t n = 0; n < lines; ++n) plan->Forward(from + n * size, scale_, work.data(), to + n * stride);
      return;
    }
    const auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_r<R>>(static_cast<size_t>(size));
    const auto finish = [&](R* line, R constant) {  // the imaginary parts of frequency 0, and of the highest one
      line[0] = constant;
      line[1] = 0;
      if (size % 2 == 0) line[size + 1] = 0;
    };
    const bool in_lanes = InLanes(size);
    Buffer work(static_cast<size_t>(in_lanes ? size * kLanes : size));
    R* const memory = work.data();
    ForLines(
        in_lanes, lines,
        [&](int64_t line, int64_t count) HWY_ATTR {
          LinesToVectors(from + line * size, size, count, size, memory);
          plan->exec(reinterpret_cast<Vector*>(memory), scale_, true);
          VectorsToLines(memory + kLanes, size - 1, stride, count, to + line * stride + 2);
          for (int64_t j = 0; j < count; ++j) finish(to + (line + j) * stride, memory[j]);
        },
        [&](int64_t line) {
          std::copy_n(from + line * size, size, memory);
          plan->exec(memory, scale_, true);
          std::copy_n(memory + 1, size - 1, to + line * stride + 2);
          finish(to + line * stride, memory[0]);
        });
  }

  // Transforms halves of spectra to real lines of `size` elements.
  void HalfLines(const R* from, int64_t lines, int64_t size, R scale, R* to) const {
    const int64_t stride = 2 * (size / 2 + 1);
    Divide(lines, kLanes, TimeOf(size), [&](int64_t begin, int64_t end) {
      SomeHalfLines(from + begin * stride, end - begin, size, scale, to + begin * size);
    });
  }
  static void SomeHalfLines(const R* from, int64_t lines, int64_t size, R scale, R* to) {
    const int64_t stride = 2 * (size / 2 + 1);
    if (RealLinePlan<R>::Supports(size)) {
      const auto plan = pocketfft::detail::get_plan<RealLinePlan<R>>(static_cast<size_t>(size));
      Buffer work(static_cast<size_t>(plan->Numbers()));
      for (int64_t n = 0; n < lines; ++n) plan->Backward(from + n * stride, scale, work.data(), to + n * size);
      return;
    }
    const auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_r<R>>(static_cast<size_t>(size));
    const bool in_lanes = InLanes(size);
    Buffer work(static_cast<size_t>(in_lanes ? size * kLanes : size));
    R* const memory = work.data();
    ForLines(
        in_lanes, lines,
        [&](int64_t line, int64_t count) HWY_ATTR {
          for (int64_t j = 0; j < kLanes; ++j) memory[j] = from[(line + std::min(j, count - 1)) * stride];
          LinesToVectors(from + line * stride + 2, stride, count, size - 1, memory + kLanes);
          plan->exec(reinterpret_cast<Vector*>(memory), scale, false);
          VectorsToLines(memory, size, size, count, to + line * size);
        },
        [&](int64_t line) {
          memory[0] = from[line * stride];
          std::copy_n(from + line * stride + 2, size - 1, memory + 1);
          plan->exec(memory, scale, false);
          std::copy_n(memory, size, to + line * size);
        });
  }

  // Transforms lines of complex numbers, or of real ones, to complex ones.
  void ComplexLines(const R* from, int64_t lines, int64_t size, R* to) const {
    Divide(lines, kLanes, TimeOf(size), [&](int64_t begin, int64_t end) {
      SomeComplexLines(from + begin * size * extents_.parts, end - begin, size, to + 2 * begin * size);
    });
  }
  void SomeComplexLines(const R* from, int64_t lines, int64_t size, R* to) const {
    const bool forward = op_.inverse == 0, real = extents_.parts == 1;
    if (LinePlan<R>::Supports(size) && (forward || !real)) {
      const auto plan = pocketfft::detail::get_plan<LinePlan<R>>(static_cast<size_t>(size));
      using Form = typename LinePlan<R>::Form;
      const Form form = real ? Form::kReal : forward ? Form::kComplex : Form::kSwapped;
      Buffer work(static_cast<size_t>(plan->Numbers()));
      for (int64_t n = 0; n < lines; ++n) {
        plan->Run(form, from + n * size * extents_.parts, scale_, work.data(), to + 2 * n * size);
      }
      return;
    }
    if (real) {
      for (int64_t i = lines * size; i-- > 0;) {
        to[2 * i] = from[i];
        to[2 * i + 1] = 0;
      }
      from = to;
    }
    const auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<R>>(static_cast<size_t>(size));
    const bool in_lanes = InLanes(2 * size);
    Buffer work(static_cast<size_t>(in_lanes ? 2 * size * kLanes : 0));
    R* const memory = work.data();
    ForLines(
        in_lanes, lines,
        [&](int64_t line, int64_t count) HWY_ATTR {
          LinesToVectors(from + 2 * line * size, 2 * size, count, 2 * size, memory);
          plan->exec(reinterpret_cast<ComplexVector*>(memory), scale_, forward);
          VectorsToLines(memory, 2 * size, 2 * size, count, to + 2 * line * size);
        },
        [&](int64_t line) {
          R* const there = to + 2 * line * size;
          if (from != to) std::copy_n(from + 2 * line * size, 2 * size, there);
          plan->exec(reinterpret_cast<Complex*>(there), scale_, forward);
        });
  }

  // Returns true if exponents are negative. The inverse transform of real numbers is the conjugate of the forward one.
  bool IsForward() const { return op_.inverse == 0 || extents_.parts == 1; }

  // Copies halves of the forward spectra of real numbers, and adds the frequencies above them, which are the conjugates
  // of those of the negative frequencies in all dimensions from `first` on.
  void CompleteLines(const R* from, int64_t lines, size_t first, R* to) const {
    const Extents& extents = extents_.input;
    const int64_t size = extents[kLast], kept = size / 2 + 1;
    const R copied = op_.inverse == 0 ? R{1} : R{-1};  // the factor of the imaginary parts
    Divide(lines, 1, static_cast<double>(size), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t rest = line, mirrored = line, step = 1;
        for (size_t d = kLast; d-- > first;) {
          const int64_t at = rest % extents[d];
          mirrored += (at == 0 ? 0 : extents[d] - 2 * at) * step;
          rest /= extents[d];
          step *= extents[d];
        }
        const R* const here = from + 2 * line * kept;
        const R* const there = from + 2 * mirrored * kept;
        R* const result = to + 2 * line * size;
        for (int64_t i = 0; i < kept; ++i) {
          result[2 * i] = here[2 * i];
          result[2 * i + 1] = copied * here[2 * i + 1];
        }
        for (int64_t i = kept; i < size; ++i) {
          result[2 * i] = there[2 * (size - i)];
          result[2 * i + 1] = -copied * there[2 * (size - i) + 1];
        }
      }
    });
  }

  // Transforms a dimension of two elements, which are `count` numbers apart.
  static void AcrossTwo(const R* from, int64_t count, R scale, R* to) {
    const hn::ScalableTag<R> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto factor = hn::Set(d, scale);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      const auto a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + count + i);
      hn::StoreU(hn::Mul(factor, hn::Add(a, b)), d, to + i);
      hn::StoreU(hn::Mul(factor, hn::Sub(a, b)), d, to + count + i);
    }
    for (; i < count; ++i) {
      const R a = from[i], b = from[count + i];
      to[i] = scale * (a + b);
      to[count + i] = scale * (a - b);
    }
  }

  // Transforms dimension `d` of complex numbers, which is not the last one: neighbours fill the lanes.
  void Across(const R* from, const Extents& extents, int64_t count, size_t d, R scale, R* to) const {
    const int64_t size = extents[d];
    int64_t outer = count, inner = 1;
    for (size_t k = 0; k < d; ++k) outer *= extents[k];
    for (size_t k = d + 1; k <= kLast; ++k) inner *= extents[k];
    if (size == 2) {
      for (int64_t o = 0; o < outer; ++o) AcrossTwo(from + 4 * o * inner, 2 * inner, scale, to + 4 * o * inner);
      return;
    }
    const int64_t blocks = (inner + kLanes - 1) / kLanes;
    Divide(outer * blocks, 1, kLanes * TimeOf(size), [&](int64_t begin, int64_t end) HWY_ATTR {
      const typename LaneNumbers<R>::Tag tag;
      const auto plan = pocketfft::detail::get_plan<pocketfft::detail::pocketfft_c<R>>(static_cast<size_t>(size));
      Buffer work(static_cast<size_t>(2 * size * kLanes));
      R* const memory = work.data();
      for (int64_t block = begin; block < end; ++block) {
        const int64_t o = block / blocks, column = block % blocks * kLanes;
        const R* const source = from + 2 * o * size * inner;
        R* const target = to + 2 * o * size * inner;
        const int64_t here = std::min<int64_t>(kLanes, inner - column);
        if (here == kLanes) {
          for (int64_t i = 0; i < size; ++i) {
            hn::Vec<decltype(tag)> real, imaginary;
            hn::LoadInterleaved2(tag, source + 2 * (i * inner + column), real, imaginary);
            hn::StoreU(real, tag, memory + 2 * i * kLanes);
            hn::StoreU(imaginary, tag, memory + (2 * i + 1) * kLanes);
          }
        } else {
          for (int64_t i = 0; i < size; ++i) {
            for (int64_t j = 0; j < kLanes; ++j) {
              const R* const element = source + 2 * (i * inner + column + std::min(j, here - 1));
              memory[2 * i * kLanes + j] = element[0];
              memory[(2 * i + 1) * kLanes + j] = element[1];
            }
          }
        }
        plan->exec(reinterpret_cast<ComplexVector*>(memory), scale, IsForward());
        if (here == kLanes) {
          for (int64_t i = 0; i < size; ++i) {
            hn::StoreInterleaved2(hn::LoadU(tag, memory + 2 * i * kLanes),
                                  hn::LoadU(tag, memory + (2 * i + 1) * kLanes), tag,
                                  target + 2 * (i * inner + column));
          }
        } else {
          for (int64_t i = 0; i < size; ++i) {
            for (int64_t j = 0; j < here; ++j) {
              target[2 * (i * inner + column + j)] = memory[2 * i * kLanes + j];
              target[2 * (i * inner + column + j) + 1] = memory[(2 * i + 1) * kLanes + j];
            }
          }
        }
      }
    });
  }

  const Dft& op_;
  const DftExtents& extents_;
  R scale_;
  const Context* context_;
};

// Few transforms of several dimensions are divided into lines. Of more transforms, a thread computes some.
constexpr int64_t kMinBatches = 8, kMinDivided = 8192;

template <class T>
Status DftCpu(const Dft& op, const Context& context, Tensor<const T, kAnyRank> signal, Tensor<T, kAnyRank> output) {
  using R = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr bool kWidens = !std::is_same_v<T, R>;
  const DftExtents extents = DftExtents::Of(op, signal.shape(), output.shape());
  const int64_t inputs = extents.inputs() * extents.parts, outputs = output.size() / extents.batches;
  const bool divides = op.dimensions > 1 && extents.batches < kMinBatches && extents.inputs() >= kMinDivided;
  const Transforms<R> transforms(op, extents, divides ? &context : nullptr);
  const Scratch<R> wide = context.Allocate<R>(kWidens ? extents.batches * (inputs + outputs) : 0);
  if (!wide) return Internal("out of memory: ", extents.batches, " transforms of ", inputs, " numbers");
  const int64_t elements = std::max(inputs, outputs);
  // The library computes short lines of several batch elements in the lanes of a vector.
  const int64_t grain = std::max<int64_t>(GrainFor(TimeOf(elements)), elements < 4096 ? 8 : 1);
  std::atomic<bool> failed = false;
  const auto transform = [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    const R* from = nullptr;
    R* to = nullptr;
    if constexpr (kWidens) {
      R* const widened = wide.data() + begin * (inputs + outputs);
      for (int64_t i = 0; i < count * inputs; ++i) widened[i] = ToFloat(signal[begin * inputs + i]);
      from = widened;
      to = widened + count * inputs;
    } else {
      from = signal.data() + begin * inputs;
      to = output.data() + begin * outputs;
    }
    try {
      transforms.Run(from, count, to);
    } catch (const std::exception&) {  // the library's memory
      failed = true;
      return;
    }
    for (int64_t b = 0; b < count; ++b) {
      if (!AllFinite(from + b * inputs, inputs)) std::fill_n(to + b * outputs, outputs, static_cast<R>(NAN));
    }
    if constexpr (kWidens) {
      for (int64_t i = 0; i < count * outputs; ++i) output[begin * outputs + i] = FromFloat<T>(to[i]);
    }
  };
  if (divides) {
    transform(0, extents.batches);
  } else {
    context.ParallelFor(extents.batches, grain, transform);
  }
  return failed ? Internal("out of memory: a transform of ", inputs, " numbers") : Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Dft, DftCpu, float, double, Half, BFloat16);
}  // namespace polyop
#endif
