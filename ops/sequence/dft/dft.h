// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>

#include "core/operator.h"

namespace polyop {

/// Computes the discrete Fourier transform of the last dimensions before the pair of parts.
struct Dft {
  enum class Norm { kBackward, kOrtho, kForward };
  static constexpr int kMaxDimensions = kMaxRank - 1;

  int64_t dimensions = 1;
  int64_t inverse = 0;
  int64_t onesided = 0;
  int64_t odd = 0;
  Norm norm = Norm::kBackward;

  static constexpr const char* kName = "dft";
  static constexpr Signature kSignature =
      "signal: T[...B, N, P] -> output: T[...B, (1 - onesided) * N + onesided * ((1 - inverse) * (N / 2 + 1) + "
      "inverse * max(N + N + odd - 2, 0)), 2 - onesided * inverse]";
  static constexpr NodeName kNodes[] = {"polyop::DFT"};
  static constexpr std::tuple kAttributes = {
      Attr("dimensions", &Dft::dimensions, "number of transformed dimensions: the last ones before the parts")
          .Between(1, kMaxDimensions),
      Attr("inverse", &Dft::inverse, "1: the inverse transform, with positive exponents").Between(0, 1),
      Attr(
          "onesided", &Dft::onesided,
          R"(1: of the last transformed dimension, the spectrum of a real signal has the frequencies 0 to N / 2 only. The
           other ones are their conjugates. The transform of a real signal returns this half; the inverse transform
           expects it, and returns a real signal)")
          .Between(0, 1),
      Attr(
          "odd", &Dft::odd,
          R"(1: the real signal that a one-sided inverse transform returns has 2 N - 1 elements in the last dimension, an
           odd number; 0: 2 N - 2. It is ignored otherwise)")
          .Between(0, 1),
      Attr(
          "norm", &Dft::norm,
          R"(which transform is divided by the number n of elements: backward: the inverse one; forward: the forward one;
           ortho: both are divided by sqrt(n))")
          .OneOf("backward", "ortho", "forward"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the discrete Fourier transform of a real or complex signal of any length.",
      .semantics = R"(The last dimension has the real part, and the imaginary part of a complex signal. A real signal
          (P = 1) has an imaginary part of 0. A one-sided inverse transform ignores the imaginary parts of elements that
          are their own conjugates, as `torch.fft.irfft` does. fp16 and bf16 are computed in fp32. If the transformed
          elements of a batch element contain NaN or infinity, all its results are NaN. An empty batch gives an empty
          output.)",
      .source = "`torch.fft.fftn`, `torch.fft.rfftn`, `torch.fft.irfftn`; DFT of ONNX",
      .differences = "torch.fft takes the transformed dimensions as an argument; here they are the last ones.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const;
};

/// The extents of a transform: `batches` times extents[0, dimensions) elements.
struct DftExtents {
  static constexpr size_t kLast = Dft::kMaxDimensions - 1;
  using Extents = std::array<int64_t, kLast + 1>;

  Extents input, output;
  int64_t batches = 1, parts = 1;

  DftExtents() {
    input.fill(1);
    output.fill(1);
  }

  static int64_t Product(const Extents& extents) {
    int64_t product = 1;
    for (const int64_t extent : extents) product *= extent;
    return product;
  }

  /// Returns the number of input elements of a transform, of which each has `parts` numbers.
  int64_t inputs() const { return Product(input); }
  /// Returns the number of elements of a transform's output.
  int64_t outputs() const { return Product(output); }
  /// Returns the extents of the two-sided spectrum.
  Extents Whole(const Dft& op) const { return op.inverse != 0 ? output : input; }
  /// Returns the factor of the results.
  double Scale(const Dft& op) const;

  /// The extents at the front are 1 if fewer dimensions are transformed.
  static DftExtents Of(const Dft& op, const Shape& signal, const Shape& output);
};

inline Status Dft::CheckInputs(std::span<const AnyTensor> inputs) const {
  const Shape& signal = inputs[0].shape;
  const int last = signal.rank() - 1;
  if (last < dimensions) {
    return InvalidArgument("attribute 'dimensions': expected at most ", last, " for 'signal' of shape ",
                           ToString(signal), ", got ", dimensions);
  }
  const int64_t parts = signal[last];
  if (parts != 1 && parts != 2) {
    return InvalidArgument("'signal': expected a last dimension of 1 (real) or 2 (complex), got ", parts);
  }
  if (onesided != 0 && parts != 1 + inverse) {
    return InvalidArgument("'signal': expected a last dimension of ", 1 + inverse, " for a one-sided ",
                           inverse != 0 ? "inverse " : "", "transform, got ", parts);
  }
  for (int64_t d = last - dimensions; d < last; ++d) {
    if (signal[static_cast<int>(d)] == 0) {
      return InvalidArgument("'signal': expected transformed dimensions of at least 1, got shape ", ToString(signal));
    }
  }
  if (onesided != 0 && inverse != 0 && 2 * signal[last - 1] + odd - 2 < 1) {
    return InvalidArgument("'signal': expected a spectrum of at least 2 frequencies, got ", signal[last - 1]);
  }
  return Status::Ok();
}

inline double DftExtents::Scale(const Dft& op) const {
  const auto count = static_cast<double>(Product(Whole(op)));
  if (op.norm == Dft::Norm::kOrtho) return 1 / std::sqrt(count);
  return (op.norm == Dft::Norm::kForward) == (op.inverse == 0) ? 1 / count : 1;
}

inline DftExtents DftExtents::Of(const Dft& op, const Shape& signal, const Shape& output) {
  DftExtents extents;
  const int last = signal.rank() - 1;
  extents.parts = signal[last];
  for (int d = 0; d < last; ++d) {
    if (d < last - op.dimensions) {
      extents.batches *= signal[d];
    } else {
      const auto at = kLast + 1 - static_cast<size_t>(last - d);
      extents.input[at] = signal[d];
      extents.output[at] = output[d];
    }
  }
  return extents;
}

}  // namespace polyop
