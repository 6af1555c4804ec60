// SPDX-License-Identifier: Apache-2.0
#include "cli/compare.h"

#include <cmath>
#include <limits>

#include "cli/base/text.h"
#include "core/elements.h"
#include "core/status.h"

namespace polyop::cli {
namespace {

struct Distance {
  double apart;   // |got - want|; not finite if one of them is not
  double excess;  // how far it exceeds the tolerance
  bool within;
};

Distance RealDistance(const Array& got, const Array& want, int64_t i, const Tolerance& tolerance) {
  const double g = got.at(i), w = want.at(i), apart = std::fabs(g - w);
  const double allowed = tolerance.absolute + tolerance.relative * std::fabs(w);
  const bool equal = g == w || (std::isnan(g) && std::isnan(w));
  const double excess = std::isfinite(apart) ? apart - allowed : std::numeric_limits<double>::infinity();
  return {apart, excess, equal || (apart <= allowed && std::isfinite(w))};
}

Distance IntegerDistance(const Array& got, const Array& want, int64_t i) {
  const int64_t g = got.integer_at(i), w = want.integer_at(i);
  const uint64_t apart =
      g > w ? static_cast<uint64_t>(g) - static_cast<uint64_t>(w) : static_cast<uint64_t>(w) - static_cast<uint64_t>(g);
  return {static_cast<double>(apart), static_cast<double>(apart), apart == 0};
}

std::string ElementText(const Array& array, int64_t i) {
  if (!IsReal(array.dtype)) return std::to_string(array.integer_at(i));
  return NumberText(array.at(i), array.dtype == DType::kF64 ? "%.17g" : "%.9g");
}

}  // namespace

std::optional<double> Difference::relative() const {
  if (!mismatch.empty() || infinite || (scale == 0 && max > 0)) return std::nullopt;
  return max == 0 ? 0 : max / scale;
}

Difference Compare(const Array& got, const Array& want, const Tolerance& tolerance) {
  Difference d;
  d.count = got.size();
  if (got.shape != want.shape || IsReal(got.dtype) != IsReal(want.dtype)) {
    d.mismatch = Concat("expected ", NameOf(want.dtype), ShapeText(want.shape), ", got ", NameOf(got.dtype),
                        ShapeText(got.shape));
    return d;
  }
  const bool real = IsReal(got.dtype);
  double sum = 0, worst = 0;
  int64_t numbers = 0;
  for (int64_t i = 0; i < d.count; ++i) {
    const Distance of = real ? RealDistance(got, want, i, tolerance) : IntegerDistance(got, want, i);
    if (const double size = std::fabs(want.at(i)); std::isfinite(size)) d.scale = std::max(d.scale, size);
    d.infinite |= !of.within && !std::isfinite(of.apart);
    if (std::isfinite(of.apart)) {
      d.max = std::max(d.max, of.apart);
      sum += of.apart;
      ++numbers;
    }
    if (of.within) continue;
    ++d.differing;
    if (d.worst_at >= 0 && !(of.excess > worst)) continue;
    worst = of.excess;
    d.worst_at = i;
  }
  if (d.worst_at >= 0) {
    d.worst_got = ElementText(got, d.worst_at);
    d.worst_want = ElementText(want, d.worst_at);
  }
  d.mean = numbers > 0 ? sum / static_cast<double>(numbers) : 0;
  return d;
}

}  // namespace polyop::cli
