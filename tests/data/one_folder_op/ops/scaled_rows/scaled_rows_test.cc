#include "ops/scaled_rows/scaled_rows.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

TEST(ScaledRows, MatchesReference) {
  std::mt19937 rng(1);
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 17}, Shape{0, 4}, Shape{5, 0}, Shape{100, 33}}) {
    for (DType dtype : {DType::kF32, DType::kF16}) {
      ExpectMatchesReference(ScaledRows{.shift = 0.5f},
                             {HostTensor::Uniform(dtype, shape, rng), HostTensor::Uniform(dtype, {shape[0]}, rng)},
                             ToleranceFor(dtype));
    }
  }
}

TEST(ScaledRows, RefusesWrongWeights) {
  ExpectError(ScaledRows{}, {HostTensor::Full(DType::kF32, {2, 3}, 1), HostTensor::Full(DType::kF32, {3}, 1)},
              {"'weight': expected dimension 0 to be N = 2 as in 'x', got 3"});
}

}  // namespace
}  // namespace polyop::testing
