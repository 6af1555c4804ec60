// SPDX-License-Identifier: Apache-2.0
// Functions of one number, shared by the references of the scan and of its gradient.
#pragma once

#include <cmath>

#include "ops/sequence/selective_scan/selective_scan.h"

namespace polyop::reference {

inline double StepSize(double delta, const SelectiveScan& op) {
  return op.delta_softplus && !(delta > 20) ? std::log1p(std::exp(delta)) : delta;
}
inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace polyop::reference
