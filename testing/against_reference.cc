#include "testing/against_reference.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "core/elements.h"
#include "core/shape_eval.h"

namespace polyop::testing {
namespace {

constexpr int kVariations = 16;

// How far an input's value is moved, of itself.
double MoveOf(DType dtype) { return dtype == DType::kF16 ? 0x1p-11 : dtype == DType::kBF16 ? 0x1p-8 : 0x1p-20; }

const HostTensor& OutputOf(const std::vector<HostTensor>& outputs, size_t index) {
  static const HostTensor absent;
  return index < outputs.size() ? outputs[index] : absent;
}

// The largest number of a real type.
double MostOf(DType dtype) {
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
  if (std::isinf(got)) return (got > 0) == (want > 0) && std::fabs(want) > MostOf(dtype) * (1 - 1e-3);
  return std::fabs(got - want) <= tolerance.absolute + tolerance.relative * std::fabs(want);
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

// The reference's outputs for the call with other real inputs: `change(dtype, value, whether it begins a row of a
// matrix)`. Inputs whose values decide shapes stay as they are.
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

// Some times the outputs for real inputs that are moved by up to MoveOf times their value, which counts as `least` at
// least.
std::vector<std::vector<HostTensor>> AgainstReference::Moved(double least) const {
  std::vector<std::vector<HostTensor>> results;
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> move(-1, 1);
  for (int v = 0; v < kVariations; ++v) {
    const auto moved = [&](DType dtype, double x) {
      const double by = move(rng) * MoveOf(dtype);
      return std::fabs(x) < least ? x + by * least : x * (1 + by);
    };
    const auto whole = [](double x) { return x == std::trunc(x); };
    auto outputs = OutputsWith([&](DType dtype, double x, bool) { return moved(dtype, x); });
    // Whole numbers may be indices, which are refused elsewhere: the first of a row may be, or any.
    if (!outputs) {
      outputs = OutputsWith([&](DType dtype, double x, bool first) { return first && whole(x) ? x : moved(dtype, x); });
    }
    if (!outputs) outputs = OutputsWith([&](DType dtype, double x, bool) { return whole(x) ? x : moved(dtype, x); });
    if (outputs) results.push_back(std::move(*outputs));
  }
  return results;
}

void AgainstReference::MakeVariations() {
  if (std::exchange(made_variations_, true)) return;
  variations_ = Moved(0);
  shifts_ = Moved(1);
  for (const double number : {0.0, 1.0, -2.0}) {
    auto outputs = OutputsWith([&](DType, double x, bool) { return std::isfinite(x) ? x : number; });
    if (outputs) replacements_.push_back(std::move(*outputs));
  }
}

bool AgainstReference::ZeroWeight(size_t output, int64_t element, double got, double want, DType dtype) const {
  if (!call_.has_non_finite || !(std::isfinite(want) || std::isfinite(got)) || replacements_.empty()) return false;
  const double finite = std::isfinite(got) ? got : want;
  const auto gives_it = [&](const std::vector<HostTensor>& outputs) {
    const HostTensor& t = OutputOf(outputs, output);
    return t.present() && element < t.size() && Near(finite, t.at(element), dtype);
  };
  // Where a maximum passes over NaN, both may be finite, and what is left depends on what stands there.
  if (std::isfinite(want) && std::isfinite(got)) return std::ranges::any_of(replacements_, gives_it);
  // Or one of them is infinite: a weight of 0 made the other's infinity, or what stood beside it, NaN, which was passed
  // over.
  return std::isinf(got) || std::isinf(want) || std::ranges::all_of(replacements_, gives_it);
}

bool AgainstReference::Excused(size_t output, int64_t element, double got, double want, DType dtype) const {
  double low = want, high = want;
  bool same = false, finite = std::isfinite(want);
  const auto look_at = [&](const std::vector<std::vector<HostTensor>>& results) {
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
  look_at(variations_);
  if (IsReal(dtype)) look_at(shifts_);
  if (same) return true;
  if (!IsReal(dtype)) return call_.extreme_attribute;
  const Tolerance tolerance = ToleranceFor(dtype);
  const double margin =
      4 * (high - low) + tolerance.absolute + tolerance.relative * std::max(std::fabs(low), std::fabs(high));
  if (finite && got >= low - margin && got <= high + margin) return true;
  if (call_.has_non_finite && !std::isfinite(got) && !std::isfinite(want)) return true;
  return call_.extreme || ZeroWeight(output, element, got, want, dtype);
}

std::string AgainstReference::DifferenceOf(size_t output, const HostTensor& got) {
  const HostTensor& want = OutputOf(want_, output);
  if (got.present() != want.present()) return got.present() ? "is there, not in the reference" : "is missing";
  if (!got.present()) return "";
  if (got.shape() != want.shape()) {
    MakeVariations();
    const bool seen = std::any_of(variations_.begin(), variations_.end(), [&](const std::vector<HostTensor>& outputs) {
      return OutputOf(outputs, output).present() && OutputOf(outputs, output).shape() == got.shape();
    });
    const bool excused = seen || call_.extreme_attribute;
    excused_ |= excused;
    return excused ? "" : Concat("has shape ", ToString(got.shape()), ", wanted ", ToString(want.shape()));
  }
  for (int64_t i = 0; i < got.size(); ++i) {
    const double g = got.at(i), w = want.at(i);
    if (Near(g, w, got.dtype())) continue;
    MakeVariations();
    if (!Excused(output, i, g, w, got.dtype())) {
      return Concat("has ", g, " at ", i, " of shape ", ToString(got.shape()), ", wanted ", w);
    }
    excused_ = true;
  }
  return "";
}

std::string AgainstReference::Difference(const std::vector<HostTensor>& got) {
  for (size_t o = 0; compares() && o < std::max(got.size(), want_.size()); ++o) {
    const std::string difference = DifferenceOf(o, OutputOf(got, o));
    if (!difference.empty()) return Concat("output ", o, " ", difference);
  }
  return "";
}

}  // namespace polyop::testing
