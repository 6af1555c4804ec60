#include "cli/compare.h"

#include <cmath>

#include "core/elements.h"
#include "core/status.h"

namespace polyop::cli {

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
    const double g = got.at(i), w = want.at(i), apart = std::fabs(g - w);
    if (std::isfinite(apart)) {
      d.max = std::max(d.max, apart);
      sum += apart;
      ++numbers;
    }
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double allowed = real ? tolerance.absolute + tolerance.relative * std::fabs(w) : 0;
    if (apart <= allowed && std::isfinite(w)) continue;
    ++d.differing;
    const double excess = std::isfinite(apart) ? apart - allowed : std::numeric_limits<double>::infinity();
    if (d.worst_at >= 0 && !(excess > worst)) continue;
    worst = excess;
    d.worst_at = i;
    d.worst_got = g;
    d.worst_want = w;
  }
  d.mean = numbers > 0 ? sum / static_cast<double>(numbers) : 0;
  return d;
}

}  // namespace polyop::cli
