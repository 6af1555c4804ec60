// The derivatives of bins with respect to the ends of a RoI.
#pragma once

namespace polyop {

/// The derivatives of the average over a bin with respect to both ends of the RoI on an axis.
struct PreciseEnds {
  double low, high;

  /// Bin i of n has the size `size`. Its average over the bin is `average`, over its first edge `first` and over its
  /// last edge `last`. The edges are i / n and (i + 1) / n of the way between the ends.
  static PreciseEnds Of(double i, double n, double size, double average, double first, double last) {
    return {(last * (1 - (i + 1) / n) - first * (1 - i / n) + average / n) / size,
            (last * (i + 1) / n - first * i / n - average / n) / size};
  }
};

}  // namespace polyop
