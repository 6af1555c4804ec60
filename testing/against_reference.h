// Whether a kernel's results are those of the reference, for calls that nobody chose.
#pragma once

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
/// element that differs is therefore excused if the reference's own result is as unsure: real inputs are moved by up to
/// 2^-20 of their value, some times, and the element must lie within four times the range of the results, or be one of
/// them if it is an integer. Where an output's size is one of those seen but not the first, its elements are not
/// compared.
///
/// One more excuse, for calls with extreme values alone: products of two such leave float's range or fall below it, so
/// there a real element may be infinite, NaN, or without the share of what underflowed. It must then be alike on all
/// instruction sets.
class AgainstReference {
 public:
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
  void MakeVariations();
  bool ExcusedElement(size_t output, int64_t element, double got, double want, DType dtype);
  std::string DifferenceOf(size_t output, const HostTensor& got);

  const RandomCall& call_;
  bool has_reference_ = false, excused_ = false;
  Status status_;
  std::vector<HostTensor> want_;
  std::vector<std::vector<HostTensor>> variations_;
};

}  // namespace polyop::testing
