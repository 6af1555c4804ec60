// Whether a kernel's results are those of the reference, for calls that nobody chose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "testing/random_call.h"

namespace polyop::testing {

/// The reference's results for one call, and what may differ from them.
///
/// Integer outputs must be equal. Real ones must be near: by the type's tolerance, relative and absolute; what leaves
/// the type's range is infinite; NaN equals NaN.
///
/// Kernels work in float and the reference in double, so a decision that hangs on the last bits (which pixel is this?
/// is this overlap above the threshold?) may fall otherwise, and a sum whose terms cancel keeps their errors. An
/// element that differs is therefore excused if the reference's own result is as unsure: real inputs are moved some
/// times by up to 2^-20 of their value (by half a unit in the last place of f16 and bf16, to which kernels may round
/// what they multiply), and the element must lie within four times the range of the results, or be one of them if it is
/// an integer. For real elements inputs are also moved by 2^-20 where they are smaller than 1: a small number added to
/// a place among pixels has the place's rounding error. Where an output's size is one of those seen but not the first,
/// its elements are not compared.
///
/// A NaN or infinity that goes in with a weight of 0 may spread or not: the reference must give the same finite element
/// whatever number stands in its place. Where there are some among the inputs, infinity and NaN count as one in what is
/// real, for a sum of both depends on which of them had a weight of 0.
///
/// In calls with extreme values products leave float's range or fall below it: there real elements are not compared;
/// nor are integers and found sizes where an attribute is extreme, as a threshold of 1e-40 is, or 0, which rounding
/// errors pass.
class AgainstReference {
 public:
  /// The operator took the call.
  explicit AgainstReference(const RandomCall& call);

  /// Whether the operator has a reference kernel in this program, and it took the call.
  bool compares() const { return has_reference_ && status_.ok(); }
  /// Why the reference refused what it was given; Ok without a reference.
  const Status& status() const { return status_; }

  /// What differs; empty if nothing does but what is excused.
  std::string Difference(const std::vector<HostTensor>& got);
  /// Whether Difference had to excuse something.
  bool excused() const { return excused_; }

 private:
  template <class Change>
  std::optional<std::vector<HostTensor>> OutputsWith(const Change& change) const;
  std::vector<std::vector<HostTensor>> Moved(double least) const;
  void MakeVariations();
  bool Excused(size_t output, int64_t element, double got, double want, DType dtype) const;
  bool ZeroWeight(size_t output, int64_t element, double got, double want, DType dtype) const;
  std::string DifferenceOf(size_t output, const HostTensor& got);

  const RandomCall& call_;
  bool has_reference_ = false, excused_ = false, made_variations_ = false;
  Status status_;
  std::vector<HostTensor> want_;
  std::vector<std::vector<HostTensor>> variations_;    // of inputs that are moved by a little of their value
  std::vector<std::vector<HostTensor>> shifts_;        // of those, but small ones by a little of 1
  std::vector<std::vector<HostTensor>> replacements_;  // of inputs with numbers in the place of NaN and infinity
};

}  // namespace polyop::testing
