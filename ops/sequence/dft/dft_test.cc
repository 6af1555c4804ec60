// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence/dft/dft.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

class DftTest : public ::testing::TestWithParam<DType> {};

Tolerance ToleranceOf(DType dtype) { return dtype == DType::kF64 ? Tolerance{1e-12, 1e-12} : ToleranceFor(dtype); }

// Powers of two, products of small primes, primes, and Whisper's length.
TEST_P(DftTest, AnyLength) {
  std::mt19937 rng(1);
  for (const int64_t length : {1, 2, 3, 8, 15, 16, 24, 32, 64, 77, 80, 96, 101, 128, 256, 400, 480, 1024, 1536}) {
    for (const int64_t parts : {1, 2}) {
      const HostTensor signal = HostTensor::Uniform(GetParam(), {9, length, parts}, rng);
      ExpectMatchesReference(Dft{.norm = Dft::Norm::kOrtho}, {signal}, ToleranceOf(GetParam()));
      ExpectMatchesReference(Dft{.inverse = 1, .norm = Dft::Norm::kOrtho}, {signal}, ToleranceOf(GetParam()));
    }
    const HostTensor real = HostTensor::Uniform(GetParam(), {9, length, 1}, rng);
    ExpectMatchesReference(Dft{.onesided = 1, .norm = Dft::Norm::kOrtho}, {real}, ToleranceOf(GetParam()));
    const HostTensor half = HostTensor::Uniform(GetParam(), {9, length / 2 + 1, 2}, rng);
    if (length > 1) {
      ExpectMatchesReference(Dft{.inverse = 1, .onesided = 1, .odd = length % 2, .norm = Dft::Norm::kOrtho}, {half},
                             ToleranceOf(GetParam()));
    }
  }
}

TEST_P(DftTest, SeveralDimensions) {
  std::mt19937 rng(2);
  for (const int64_t dimensions : {2, 3}) {
    const HostTensor complex = HostTensor::Uniform(GetParam(), {2, 3, 4, 6, 2}, rng);
    const HostTensor real = HostTensor::Uniform(GetParam(), {2, 3, 4, 6, 1}, rng);
    for (const Dft::Norm norm : {Dft::Norm::kBackward, Dft::Norm::kOrtho, Dft::Norm::kForward}) {
      const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-12, 1e-12} : Tolerance{2e-2, 5e-2};
      ExpectMatchesReference(Dft{.dimensions = dimensions, .norm = norm}, {complex}, tolerance);
      ExpectMatchesReference(Dft{.dimensions = dimensions, .inverse = 1, .norm = norm}, {real}, tolerance);
      ExpectMatchesReference(Dft{.dimensions = dimensions, .onesided = 1, .norm = norm}, {real}, tolerance);
      ExpectMatchesReference(Dft{.dimensions = dimensions, .inverse = 1, .onesided = 1, .odd = 1, .norm = norm},
                             {complex}, tolerance);
    }
  }
}

// The lines of few large transforms are divided among threads.
TEST_P(DftTest, LargeTransformsOfSeveralDimensions) {
  std::mt19937 rng(5);
  const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-12, 1e-12} : Tolerance{2e-2, 5e-2};
  for (const Shape& shape : {Shape{1, 128, 101}, Shape{2, 90, 128}, Shape{1, 2, 64, 81}, Shape{3, 21, 20, 23}}) {
    const auto with_parts = [&](int64_t parts) {
      Shape whole = shape;
      whole.push_back(parts);
      return HostTensor::Uniform(GetParam(), whole, rng);
    };
    HostTensor complex = with_parts(2);
    const HostTensor real = with_parts(1);
    const int64_t dimensions = shape.rank() - 1;
    const Dft op{.dimensions = dimensions, .norm = Dft::Norm::kOrtho};
    ExpectMatchesReference(op, {complex}, tolerance);
    ExpectMatchesReference(op, {real}, tolerance);
    Dft other = op;
    other.onesided = 1;
    ExpectMatchesReference(other, {real}, tolerance);
    other.inverse = 1;
    ExpectMatchesReference(other, {complex}, tolerance);
    complex.set(77, NAN);  // in the first batch element
    ExpectMatchesReference(op, {complex}, tolerance);
  }
}

TEST_P(DftTest, ManyDimensions) {
  std::mt19937 rng(4);
  const Tolerance tolerance = GetParam() == DType::kF64 ? Tolerance{1e-12, 1e-12} : Tolerance{2e-2, 5e-2};
  for (const int64_t last : {1, 2, 5, 6}) {
    const HostTensor complex = HostTensor::Uniform(GetParam(), {2, 2, 1, 3, 2, last, 2}, rng);
    const HostTensor real = HostTensor::Uniform(GetParam(), {2, 2, 1, 3, 2, last, 1}, rng);
    for (const int64_t inverse : {0, 1}) {
      for (const HostTensor& signal : {complex, real}) {
        ExpectMatchesReference(Dft{.dimensions = 4, .inverse = inverse}, {signal}, tolerance);
        ExpectMatchesReference(Dft{.dimensions = 6, .inverse = inverse, .norm = Dft::Norm::kOrtho}, {signal},
                               tolerance);
      }
    }
    ExpectMatchesReference(Dft{.dimensions = 5, .onesided = 1}, {real}, tolerance);
    ExpectMatchesReference(Dft{.dimensions = 5, .inverse = 1, .onesided = 1, .odd = 1}, {complex}, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DftTest, ::testing::Values(DType::kF32, DType::kF64, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

// The error grows with the logarithm of the length only, also for lengths with large prime factors.
TEST(Dft, LongLinesAreExact) {
  std::mt19937 rng(3);
  for (const int64_t length : {16000, 4099, 4096, 3750}) {
    const HostTensor signal = HostTensor::Uniform(DType::kF32, {1, length, 1}, rng);
    ExpectMatchesReference(Dft{.onesided = 1, .norm = Dft::Norm::kOrtho}, {signal}, {1e-6, 2e-5});
  }
  const HostTensor half = HostTensor::Uniform(DType::kF32, {1, 3001, 2}, rng);
  ExpectMatchesReference(Dft{.inverse = 1, .onesided = 1, .norm = Dft::Norm::kOrtho}, {half}, {1e-6, 2e-5});
}

TEST(Dft, ASignalWithNanDoesNotAffectOthers) {
  HostTensor signal = HostTensor::Full(DType::kF32, {3, 6, 2}, 1);
  signal.set(13, NAN);
  signal.set(30, INFINITY);
  ExpectMatchesReference(Dft{}, {signal});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Dft{}, {signal}, &out).ok());
  EXPECT_EQ(out[0].at(0), 6);
  for (int64_t i = 12; i < 36; ++i) EXPECT_TRUE(std::isnan(out[0].at(i))) << i;
}

TEST(Dft, EmptyAndInvalidInputs) {
  const auto zeros = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(Dft{}, {zeros({0, 4, 2})});
  ExpectError(Dft{}, {zeros({3, 0, 2})},
              {"'signal': expected transformed dimensions of at least 1, got shape [3, 0, 2]"});
  ExpectError(Dft{}, {zeros({3, 4, 3})}, {"'signal': expected a last dimension of 1 (real) or 2 (complex), got 3"});
  ExpectError(Dft{.onesided = 1}, {zeros({3, 4, 2})}, {"expected a last dimension of 1 for a one-sided transform"});
  ExpectError(Dft{.inverse = 1, .onesided = 1}, {zeros({3, 4, 1})}, {"expected a last dimension of 2"});
  ExpectError(Dft{.inverse = 1, .onesided = 1}, {zeros({3, 1, 2})}, {"expected a spectrum of at least 2 frequencies"});
  ExpectError(Dft{.dimensions = 3}, {zeros({3, 4, 2})}, {"attribute 'dimensions': expected at most 2"});
  ExpectAttributeError(*FindOp("dft"), {{"dimensions", AttrValue::Int(8)}}, {"'dimensions'"});
}

}  // namespace
}  // namespace polyop::testing
