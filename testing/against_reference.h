// SPDX-License-Identifier: Apache-2.0
// Compares kernels with the reference on random calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "testing/random_call.h"

namespace polyop::testing {

/// The reference's results for one call, and the differences from them that are accepted.
///
/// Integer outputs must be equal. Real outputs must be equal within the type's relative and absolute tolerance. Values
/// beyond the type's range are infinite, and NaN equals NaN.
///
/// Kernels compute in float and the reference in double. A decision that depends on rounding (which pixel, or whether
/// an overlap exceeds the threshold) may therefore differ, and cancellation in a sum amplifies rounding errors. A
/// differing element is accepted if the reference's result is as sensitive: real inputs are perturbed several times by
/// up to 2^-20 of their value (half a unit in the last digit for f16 and bf16, to which kernels may round factors), and
/// the element must be within four times the range of these results, or equal one of them if it is an integer. An
/// attribute `output_scale`, with which an operator rounds its results to integers, is perturbed, too. For real
/// elements, inputs below 1 are also perturbed by 2^-20, because a small number that is added to a pixel position has
/// the position's rounding error. If an output's size equals that of a perturbed result only, its elements are not
/// compared. If the reference rejects the inputs, but not all perturbed ones (a matrix that is singular but for
/// rounding errors), nothing is compared.
///
/// A NaN or infinity with a weight of 0 may propagate or not: such an element is accepted if the reference gives the
/// same finite element for any number instead of the NaN or infinity, and the element is as near to it as above. If the
/// inputs contain such values, infinity and NaN in real outputs are equal, because their sum depends on which of them
/// has a weight of 0.
///
/// In calls with extreme values, products overflow or underflow: real elements are not compared. If an attribute is
/// extreme (such as a threshold of 1e-40, or of 0, which rounding errors exceed), integers and found sizes are not
/// compared either. Nor are integers to which an operator with an `output_scale` rounds, if the inputs contain extreme
/// values, infinity or NaN.
class AgainstReference {
 public:
  /// Requires: the operator accepts the call.
  explicit AgainstReference(const RandomCall& call);

  /// Returns true if this program has a reference kernel of the operator, and it accepted the call.
  bool compares() const { return has_reference_ && status_.ok(); }

  /// Returns the first difference that is not accepted, or an empty text.
  std::string Difference(const std::vector<HostTensor>& got);
  /// Returns true if Difference() accepted a difference.
  bool excused() const { return excused_; }

 private:
  template <class Change>
  std::optional<std::vector<HostTensor>> OutputsWith(const Change& change) const;
  std::vector<std::vector<HostTensor>> Perturbed(double min, std::optional<double> non_finite = {}) const;
  std::vector<std::vector<HostTensor>> WithOtherScales() const;
  void MakeVariations();
  bool Excused(size_t output, int64_t element, double got, double want, DType dtype);
  bool ZeroWeight(size_t output, int64_t element, double got, double want, DType dtype);
  bool InRangeOfFinite(size_t output, int64_t element, double got, DType dtype);
  std::string DifferenceOf(size_t output, const HostTensor& got);

  const RandomCall& call_;
  bool has_reference_ = false, excused_ = false, has_variations_ = false;
  Status status_;
  std::vector<HostTensor> want_;
  std::vector<std::vector<HostTensor>> variations_;    // results of perturbed inputs
  std::vector<std::vector<HostTensor>> shifts_;        // like variations_, with small inputs perturbed relative to 1
  std::vector<std::vector<HostTensor>> replacements_;  // results of inputs with numbers instead of NaN and infinity
  std::vector<std::vector<HostTensor>> finite_variations_;  // results of perturbed inputs with 1 instead of these
  std::optional<std::vector<HostTensor>>
      huge_;  // results of inputs with kHuge instead of infinity and 0 instead of NaN
};

}  // namespace polyop::testing
