#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <exception>
#include <limits>
#include <type_traits>

#include "ops/dft/dft.h"
#include "pocketfft_hdronly.h"

namespace polyop {
namespace {

template <class R>
bool IsFinite(const R* values, int64_t count) {
  using Bits = std::conditional_t<sizeof(R) == 4, uint32_t, uint64_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<R>::infinity());
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) finite &= (std::bit_cast<Bits>(values[i]) & kExponent) != kExponent;
  return finite;
}

// Transforms of one layout: the library's shapes and strides for `count` batch elements.
template <class R>
class Transforms {
 public:
  Transforms(const Dft& op, const DftExtents& extents)
      : op_(op), extents_(extents), scale_(static_cast<R>(extents.Scale(op))) {
    for (size_t d = 3 - static_cast<size_t>(op.dimensions); d < 3; ++d) axes_.push_back(d + 1);
  }

  // Requires: all input elements are finite.
  void Run(const R* from, int64_t count, R* to) const {
    auto* const spectrum = reinterpret_cast<std::complex<R>*>(to);
    const bool forward = op_.inverse == 0;
    if (op_.onesided != 0 && forward) {
      pocketfft::r2c(ShapeOf(extents_.input, count), Strides(extents_.input, 1), Strides(extents_.output, 2), axes_,
                     true, from, spectrum, scale_);
    } else if (op_.onesided != 0) {
      pocketfft::c2r(ShapeOf(extents_.output, count), Strides(extents_.input, 2), Strides(extents_.output, 1), axes_,
                     false, reinterpret_cast<const std::complex<R>*>(from), to, scale_);
    } else {
      const auto* given = reinterpret_cast<const std::complex<R>*>(from);
      if (extents_.parts == 1) {
        std::copy_n(from, count * extents_.inputs(), spectrum);
        given = spectrum;
      }
      const auto strides = Strides(extents_.input, 2);
      pocketfft::c2c(ShapeOf(extents_.input, count), strides, strides, axes_, forward, given, spectrum, scale_);
    }
  }

 private:
  static pocketfft::shape_t ShapeOf(const std::array<int64_t, 3>& extents, int64_t count) {
    return {static_cast<size_t>(count), static_cast<size_t>(extents[0]), static_cast<size_t>(extents[1]),
            static_cast<size_t>(extents[2])};
  }
  static pocketfft::stride_t Strides(const std::array<int64_t, 3>& extents, int64_t parts) {
    const int64_t element = parts * static_cast<int64_t>(sizeof(R));
    return {element * extents[0] * extents[1] * extents[2], element * extents[1] * extents[2], element * extents[2],
            element};
  }

  const Dft& op_;
  const DftExtents& extents_;
  R scale_;
  pocketfft::shape_t axes_;
};

template <class T>
Status DftCpu(const Dft& op, const Context& context, Tensor<const T, kAnyRank> signal, Tensor<T, kAnyRank> output) {
  using R = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr bool kWidens = !std::is_same_v<T, R>;
  const DftExtents extents = DftExtents::Of(op, signal.shape(), output.shape());
  const int64_t inputs = extents.inputs() * extents.parts, outputs = output.size() / extents.batches;
  const Transforms<R> transforms(op, extents);
  const Scratch<R> wide = context.Allocate<R>(kWidens ? extents.batches * (inputs + outputs) : 0);
  if (!wide) return Internal("out of memory: ", extents.batches, " transforms of ", inputs, " numbers");
  const auto elements = static_cast<double>(std::max(inputs, outputs));
  // The library computes short lines of several batch elements in the lanes of a vector.
  const int64_t grain =
      std::max<int64_t>(GrainFor(elements * (1 + 0.2 * std::log2(elements))), elements < 4096 ? 8 : 1);
  std::atomic<bool> failed = false;
  context.ParallelFor(extents.batches, grain, [&](int64_t begin, int64_t end) {
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
      if (!IsFinite(from + b * inputs, inputs)) std::fill_n(to + b * outputs, outputs, static_cast<R>(NAN));
    }
    if constexpr (kWidens) {
      for (int64_t i = 0; i < count * outputs; ++i) output[begin * outputs + i] = FromFloat<T>(to[i]);
    }
  });
  return failed ? Internal("out of memory: a transform of ", inputs, " numbers") : Status::Ok();
}

POLYOP_PLAIN_CPU_KERNELS(Dft, DftCpu, float, double, Half, BFloat16);

}  // namespace
}  // namespace polyop
