// SPDX-License-Identifier: Apache-2.0
#include "testing/against_reference.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <utility>

#include "core/elements.h"
#include "core/shape_eval.h"

namespace polyop::testing {
namespace {

constexpr int kVariations = 16;
constexpr double kHuge = 1e30;  // replaces infinity

// Returns the relative perturbation of an input.
double PerturbationOf(DType dtype) { return dtype == DType::kF16 ? 0x1p-11 : dtype == DType::kBF16 ? 0x1p-8 : 0x1p-20; }

const HostTensor& OutputOf(const std::vector<HostTensor>& outputs, size_t index) {
  static const HostTensor absent;
  return index < outputs.size() ? outputs[index] : absent;
}

// Returns the largest number of a real type.
double MaxOf(DType dtype) {
  switch (dtype) {
    case DType::kF16: return 65504;
    case DType::kF64: return std::numeric_limits<double>::max();
    case DType::kBF16: return 3.3895313892515355e38;
    default: return std::numeric_limits<float>::max();
  }
}

bool Near(double got, double want, DType dtype) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return true;
  if (!IsReal(dtype)) return false;
  const Tolerance tolerance = ToleranceFor(dtype);
  if (std::isinf(got)) return (got > 0) == (want > 0) && std::fabs(want) > MaxOf(dtype) * (1 - 1e-3);
  return std::fabs(got - want) <= tolerance.absolute + tolerance.relative * std::fabs(want);
}

// Returns whether a number is within four times the range of the results of perturbed inputs.
bool InRange(double got, double low, double high, DType dtype) {
  const Tolerance tolerance = ToleranceFor(dtype);
  const double margin =
      4 * (high - low) + tolerance.absolute + tolerance.relative * std::max(std::fabs(low), std::fabs(high));
  return got >= low - margin && got <= high + margin;
}

}  // namespace

AgainstReference::AgainstReference(const RandomCall& call) : call_(call) {
  has_reference_ = std::any_of(call.op->kernels.begin(), call.op->kernels.end(),
                               [](const Kernel& k) { return k.device == Device::kReference; });
  if (has_reference_) {
    status_ = RunReference(*call.op, call.params.get(), call.inputs, &want_, call.optional_outputs ? 99 : 0,
                           kMaxOutputElements);
  }
}

// Returns the reference's outputs for changed real inputs: `change(dtype, value, is_first_in_row)` returns the new
// value. Inputs whose values determine shapes are not changed.
template <class Change>
std::optional<std::vector<HostTensor>> AgainstReference::OutputsWith(const Change& change) const {
  const Op& op = *call_.op;
  const Kernel* kernel = nullptr;
  std::vector<AnyTensor> views;
  for (const HostTensor& t : call_.inputs) views.push_back(t.view());
  if (!op.FindKernel(Device::kCpu, views, &kernel).ok()) return std::nullopt;
  const OpSignature& signature = op.signatures[kernel->signature];
  std::vector<HostTensor> inputs = call_.inputs, outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int index = std::min(static_cast<int>(i), signature.signature->num_inputs() - 1);
    const bool fixed = signature.signature->input(index).any_dtype || signature.needs_value(index);
    const DType dtype = inputs[i].dtype();
    if (!inputs[i].present() || !IsReal(dtype) || fixed) continue;
    inputs[i] = inputs[i].Cast(DType::kF64);
    const Shape& shape = inputs[i].shape();
    for (int64_t e = 0; e < inputs[i].size(); ++e)
      inputs[i].set(e, change(dtype, inputs[i].at(e), shape.rank() == 2 && e % shape[1] == 0));
  }
  if (!RunReference(op, call_.params.get(), inputs, &outputs, call_.optional_outputs ? 99 : 0, kMaxOutputElements).ok())
    return std::nullopt;
  return outputs;
}

// Returns the outputs of an operator that rounds its results to integers, for scales of them that differ by rounding.
std::vector<std::vector<HostTensor>> AgainstReference::WithOtherScales() const {
  std::vector<std::vector<HostTensor>> results;
  if (call_.op->FindAttribute("output_scale") == nullptr) return results;
  for (const double change : {-0x1p-19, 0x1p-19}) {
    const Params params = call_.op->DefaultParams();
    for (const AttrInfo& info : call_.op->attributes) {
      AttrValue value = info.get(info.spec, call_.params.get());
      if (std::string_view(info.spec.name) == "output_scale") value.floats[0] *= 1 + change;
      if (!SetAttribute(*call_.op, params.get(), info.spec.name, value).ok()) return results;
    }
    std::vector<HostTensor> outputs;
    const int requested = call_.optional_outputs ? 99 : 0;
    if (RunReference(*call_.op, params.get(), call_.inputs, &outputs, requested, kMaxOutputElements).ok()) {
      results.push_back(std::move(outputs));
    }
  }
  return results;
}

// Returns the outputs for real inputs that are perturbed by up to PerturbationOf() times max(their value, `min`).
// `non_finite` replaces NaN and infinity, if given.
std::vector<std::vector<HostTensor>> AgainstReference::Perturbed(double min, std::optional<double> non_finite) const {
  std::vector<std::vector<HostTensor>> results;
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> direction(-1, 1);
  for (int v = 0; v < kVariations; ++v) {
    const auto perturbed = [&](DType dtype, double x) {
      if (non_finite && !std::isfinite(x)) return *non_finite;
      const double by = direction(rng) * PerturbationOf(dtype);
      return std::fabs(x) < min ? x + by * min : x * (1 + by);
    };
    const auto is_integer = [](double x) { return x == std::trunc(x); };
    auto outputs = OutputsWith([&](DType dtype, double x, bool) { return perturbed(dtype, x); });
    // Integers may be indices, which are invalid if perturbed: keeps the first of each row, then all.
    if (!outputs) {
      outputs = OutputsWith(
          [&](DType dtype, double x, bool first) { return first && is_integer(x) ? x : perturbed(dtype, x); });
    }
    if (!outputs)
      outputs = OutputsWith([&](DType dtype, double x, bool) { return is_integer(x) ? x : perturbed(dtype, x); });
    if (outputs) results.push_back(std::move(*outputs));
  }
  return results;
}

void AgainstReference::MakeVariations() {
  if (std::exchange(has_variations_, true)) return;
  variations_ = Perturbed(0);
  for (std::vector<HostTensor>& outputs : WithOtherScales()) variations_.push_back(std::move(outputs));
  shifts_ = Perturbed(1);
  for (const double number : {0.0, 1.0, -2.0}) {
    auto outputs = OutputsWith([&](DType, double x, bool) { return std::isfinite(x) ? x : number; });
    if (outputs) replacements_.push_back(std::move(*outputs));
  }
  huge_ = OutputsWith([](DType, double x, bool) { return std::isnan(x) ? 0 : std::clamp(x, -kHuge, kHuge); });
}

// Returns whether a number is as near to the results of calls without NaN and infinity as rounding errors are.
bool AgainstReference::InRangeOfFinite(size_t output, int64_t element, double got, DType dtype) {
  if (finite_variations_.empty()) {
    for (const double min : {0.0, 1.0}) std::ranges::move(Perturbed(min, 1.0), std::back_inserter(finite_variations_));
  }
  double low = INFINITY, high = -INFINITY;
  for (const std::vector<HostTensor>& outputs : finite_variations_) {
    const HostTensor& t = OutputOf(outputs, output);
    if (!t.present() || element >= t.size()) continue;
    low = std::min(low, t.at(element));
    high = std::max(high, t.at(element));
  }
  return InRange(got, low, high, dtype);
}

bool AgainstReference::ZeroWeight(size_t output, int64_t element, double got, double want, DType dtype) {
  if (!call_.has_non_finite || !(std::isfinite(want) || std::isfinite(got)) || replacements_.empty()) return false;
  const double finite = std::isfinite(got) ? got : want;
  const auto gives = [&](double expected, const std::vector<HostTensor>& outputs) {
    const HostTensor& t = OutputOf(outputs, output);
    return t.present() && element < t.size() && Near(expected, t.at(element), dtype);
  };
  const auto gives_it = [&](const std::vector<HostTensor>& outputs) { return gives(finite, outputs); };
  // If a maximum ignores NaN, both may be finite, and the result depends on the replacement.
  if (std::isfinite(want) && std::isfinite(got)) return std::ranges::any_of(replacements_, gives_it);
  if (std::ranges::all_of(replacements_, gives_it)) return true;
  const HostTensor& replaced = OutputOf(replacements_[0], output);
  if (IsReal(dtype) && replaced.present() && element < replaced.size() &&
      std::fabs(finite - replaced.at(element)) < 0.01 * (1 + std::fabs(finite)) &&  // otherwise saves time
      std::ranges::all_of(
          replacements_, [&](const auto& outputs) { return gives(replaced.at(element), outputs); }) &&
      InRangeOfFinite(output, element, finite, dtype)) {
    return true;
  }
  // One of them may be infinite, while in the other a weight of 0 times the infinity, or times a number next to it, is
  // NaN, which a maximum ignored. Huge numbers instead of infinities are not affected by weights of 0, so the result is
  // huge.
  const double infinity = std::isinf(got) ? got : want;
  if (!std::isinf(infinity) || !huge_) return false;
  const HostTensor& t = OutputOf(*huge_, output);
  return t.present() && element < t.size() && t.at(element) * std::copysign(1.0, infinity) > kHuge / 1e20;
}

bool AgainstReference::Excused(size_t output, int64_t element, double got, double want, DType dtype) {
  double low = want, high = want;
  bool same = false, finite = std::isfinite(want);
  const auto include = [&](const std::vector<std::vector<HostTensor>>& results) {
    for (const std::vector<HostTensor>& outputs : results) {
      const HostTensor& t = OutputOf(outputs, output);
      if (!t.present() || element >= t.size()) continue;
      const double v = t.at(element);
      same |= Near(got, v, dtype);
      finite &= std::isfinite(v);
      low = std::min(low, v);
      high = std::max(high, v);
    }
  };
  include(variations_);
  if (IsReal(dtype)) include(shifts_);
  if (same) return true;
  if (!IsReal(dtype)) {
    // NaN and infinity, which have no integer, may be lost on the way to a result that is rounded.
    const bool rounded = call_.op->FindAttribute("output_scale") != nullptr;
    return call_.extreme_attribute || (rounded && (call_.has_non_finite || call_.extreme));
  }
  if (finite && InRange(got, low, high, dtype)) return true;
  if (call_.has_non_finite && !std::isfinite(got) && !std::isfinite(want)) return true;
  return call_.extreme || ZeroWeight(output, element, got, want, dtype);
}

std::string AgainstReference::DifferenceOf(size_t output, const HostTensor& got) {
  const HostTensor& want = OutputOf(want_, output);
  if (got.present() != want.present()) return got.present() ? "is present, but not in the reference" : "is missing";
  if (!got.present()) return "";
  if (got.shape() != want.shape()) {
    MakeVariations();
    const bool seen = std::any_of(variations_.begin(), variations_.end(), [&](const std::vector<HostTensor>& outputs) {
      return OutputOf(outputs, output).present() && OutputOf(outputs, output).shape() == got.shape();
    });
    const bool excused = seen || call_.extreme_attribute;
    excused_ |= excused;
    return excused ? "" : Concat("expected shape ", ToString(want.shape()), ", got ", ToString(got.shape()));
  }
  for (int64_t i = 0; i < got.size(); ++i) {
    const double g = got.at(i), w = want.at(i);
    if (Near(g, w, got.dtype())) continue;
    MakeVariations();
    if (!Excused(output, i, g, w, got.dtype())) {
      return Concat("element ", i, " of shape ", ToString(got.shape()), ": expected ", w, ", got ", g);
    }
    excused_ = true;
  }
  return "";
}

std::string AgainstReference::Difference(const std::vector<HostTensor>& got) {
  if (!status_.ok()) {
    MakeVariations();
    excused_ = !variations_.empty();
    return excused_ ? "" : "the reference rejects a call that the kernel accepts: " + status_.message();
  }
  for (size_t o = 0; compares() && o < std::max(got.size(), want_.size()); ++o) {
    const std::string difference = DifferenceOf(o, OutputOf(got, o));
    if (!difference.empty()) return Concat("output ", o, ": ", difference);
  }
  return "";
}

}  // namespace polyop::testing
