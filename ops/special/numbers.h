// SPDX-License-Identifier: Apache-2.0
// Special functions of single numbers, which GPUs compute.
#pragma once

#include <cmath>

#include "core/host_device.h"

namespace polyop::special {

POLYOP_HD inline double Select(bool mask, double yes, double no) { return mask ? yes : no; }
POLYOP_HD inline bool Any(bool mask) { return mask; }
POLYOP_HD inline double Abs(double x) { return std::fabs(x); }
POLYOP_HD inline double Floor(double x) { return std::floor(x); }
POLYOP_HD inline double Round(double x) { return std::rint(x); }
POLYOP_HD inline double SquareRoot(double x) { return std::sqrt(x); }
POLYOP_HD inline double MultiplyAdd(double x, double y, double z) { return x * y + z; }
POLYOP_HD inline double FusedMultiplyAdd(double x, double y, double z) { return std::fma(x, y, z); }
POLYOP_HD inline double CopySign(double x, double sign) { return std::copysign(x, sign); }
POLYOP_HD inline double Exp(double x) { return std::exp(x); }
POLYOP_HD inline double Log(double x) { return std::log(x); }
POLYOP_HD inline double Log1p(double x) { return std::log1p(x); }
POLYOP_HD inline double Sin(double x) { return std::sin(x); }
POLYOP_HD inline void SinCos(double x, double& sine, double& cosine) {
  sine = std::sin(x);
  cosine = std::cos(x);
}

#include "ops/special/unary.h"
static_assert(FullArithmetic<double>);

// After it, whose constants it uses:
#include "ops/special/polynomials.h"

}  // namespace polyop::special
