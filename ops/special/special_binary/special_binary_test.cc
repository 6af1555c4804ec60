// SPDX-License-Identifier: Apache-2.0
#include "ops/special/special_binary/special_binary.h"

#include <cmath>
#include <limits>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Function = SpecialBinary::Function;

HostTensor F64(const std::vector<double>& values) {
  return HostTensor::Of(DType::kF64, {static_cast<int64_t>(values.size())}, values);
}

constexpr int64_t kVariants[] = {SpecialBinary::kHypot, SpecialBinary::kNextafter, SpecialBinary::kCopysign,
                                 SpecialBinary::kFmod,  SpecialBinary::kLogaddexp, SpecialBinary::kXlogy,
                                 SpecialBinary::kAtan2};
constexpr int64_t kChebyshevs[] = {SpecialBinary::kChebyshevT, SpecialBinary::kChebyshevU, SpecialBinary::kChebyshevV,
                                   SpecialBinary::kChebyshevW};

SpecialBinary Elementary(int64_t variant) { return {.function = Function::kElementary, .variant = variant}; }

class SpecialBinaryTest : public ::testing::TestWithParam<DType> {
 public:
  Tolerance tolerance() const { return GetParam() == DType::kF64 ? Tolerance{1e-11, 1e-11} : Tolerance{2e-6, 2e-6}; }
};

TEST_P(SpecialBinaryTest, IncompleteGamma) {
  std::mt19937 rng(1);
  for (const double size : {1.0, 30.0, 300.0, 15000.0, 1e6}) {
    const HostTensor a = HostTensor::Uniform(GetParam(), {60}, rng, size / 10, size);
    HostTensor x = a;
    for (int64_t i = 0; i < x.size(); ++i) {
      x.set(i, std::fabs(a.at(i) + (static_cast<double>(rng() % 2000) / 250 - 4) * std::sqrt(a.at(i))));
    }
    for (const Function function : {Function::kIgamma, Function::kIgammac}) {
      ExpectMatchesReference(SpecialBinary{.function = function}, {a, x}, tolerance());
    }
  }
}

TEST_P(SpecialBinaryTest, IncompleteGammaOfAllSizes) {
  std::mt19937 rng(6);
  std::uniform_real_distribution<double> exponent(-20, 10);
  HostTensor a = HostTensor::Full(GetParam(), {3001}, 0), x = a;
  for (int64_t i = 0; i < a.size(); ++i) {
    a.set(i, std::exp2(exponent(rng)));
    x.set(i, std::exp2(exponent(rng)));
  }
  ExpectMatchesReference(SpecialBinary{.function = Function::kIgamma}, {a, x}, tolerance());
  // The difference of the lower part from 1 has few digits where that is near 1.
  const double digits = GetParam() == DType::kF64 ? 1e-11 : 1e-6;
  ExpectMatchesReference(SpecialBinary{.function = Function::kIgammac}, {a, x}, Tolerance{digits, digits});
}

TEST_P(SpecialBinaryTest, Zeta) {
  std::mt19937 rng(2);
  const HostTensor s = HostTensor::Uniform(GetParam(), {90}, rng, 1.1, 40);
  HostTensor whole = s;
  for (int64_t i = 0; i < whole.size(); ++i) whole.set(i, static_cast<double>(2 + i % 9));
  const SpecialBinary zeta{.function = Function::kZeta};
  ExpectMatchesReference(zeta, {s, HostTensor::Uniform(GetParam(), {90}, rng, 0.1, 90)}, tolerance());
  ExpectMatchesReference(zeta, {whole, HostTensor::Uniform(GetParam(), {90}, rng, -90, 9)}, tolerance());
}

TEST_P(SpecialBinaryTest, Polynomials) {
  std::mt19937 rng(3);
  const HostTensor x = HostTensor::Uniform(GetParam(), {80}, rng, -1.5, 1.5);
  HostTensor n = x;
  for (int64_t i = 0; i < n.size(); ++i) n.set(i, static_cast<double>(i % 20) - 2 + (i % 3) * 0.3);
  for (const Function function :
       {Function::kHermiteH, Function::kHermiteHe, Function::kLaguerre, Function::kLegendre}) {
    ExpectMatchesReference(SpecialBinary{.function = function}, {x, n}, tolerance());
  }
}

TEST_P(SpecialBinaryTest, ChebyshevPolynomials) {
  std::mt19937 rng(7);
  HostTensor x = HostTensor::Uniform(GetParam(), {331}, rng, -1.2, 1.2);
  HostTensor n = x, large = x;
  const std::vector<double> ends = {1, -1, 0, -0.0, 1 + 1e-6, -1 - 1e-6, 1 - 1e-6, -1 + 1e-6, 30, -30, 1e30, -1e30};
  for (int64_t i = 0; i < n.size(); ++i) {
    n.set(i, static_cast<double>(i % 20) - 2 + (i % 3) * 0.3);
    large.set(i, i % 2 == 0 ? 1000 + i : 100000 + 7 * i);
  }
  for (const int64_t variant : kChebyshevs) {
    ExpectMatchesReference(Elementary(variant), {x, n}, tolerance());
    for (size_t i = 0; i < ends.size(); ++i) {
      HostTensor other = HostTensor::Full(GetParam(), {331}, ends[i]);
      ExpectMatchesReference(Elementary(variant), {other, n}, tolerance());
    }
    if (GetParam() == DType::kF64) {  // an error in x counts as much as the square of the degree
      ExpectMatchesReference(Elementary(variant), {x, large}, Tolerance{1e-8, 1e-8});
    }
  }
}

TEST_P(SpecialBinaryTest, ElementaryFunctions) {
  std::mt19937 rng(4);
  const HostTensor a = HostTensor::Uniform(GetParam(), {3, 37}, rng, -9, 9);
  const HostTensor b = HostTensor::Uniform(GetParam(), {3, 37}, rng, -2, 2);
  const HostTensor far = HostTensor::Uniform(GetParam(), {3, 37}, rng, -1e9, 1e9);
  for (const int64_t variant : kVariants) {
    ExpectMatchesReference(Elementary(variant), {a, b}, tolerance());
    ExpectMatchesReference(Elementary(variant), {far, b}, tolerance());
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SpecialBinaryTest, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

std::vector<double> At(Function function, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<HostTensor> out;
  EXPECT_TRUE(testing::Run(SpecialBinary{.function = function}, {F64(a), F64(b)}, &out).ok());
  return out[0].ToDoubles();
}

// Values of mpmath.
TEST(SpecialBinary, KnownValues) {
  EXPECT_NEAR(At(Function::kIgamma, {2.5}, {3})[0], 0.69378108158672160, 1e-14);
  EXPECT_NEAR(At(Function::kIgammac, {500}, {480})[0], 0.81371802680967540, 1e-12);
  EXPECT_NEAR(At(Function::kZeta, {2}, {1})[0], 1.64493406684822644, 1e-15);
  EXPECT_NEAR(At(Function::kZeta, {3}, {-100.5})[0], 4.9013601313598786e-5, 1e-14);
  EXPECT_NEAR(At(Function::kLegendre, {0.3}, {4})[0], 0.0729375, 1e-15);
}

TEST(SpecialBinary, LimitsAndPoles) {
  const std::vector<double> numbers = {NAN, INFINITY, -INFINITY, 0, -0.0, 1, 2, 2.5, -0.5, -3, 1e30, 3};
  std::vector<double> a, b;
  for (const double x : numbers) {
    for (const double y : numbers) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  for (const Function function : {Function::kIgamma, Function::kIgammac, Function::kZeta}) {
    const SpecialBinary op{.function = function};
    ExpectMatchesReference(op, {F64(a), F64(b)}, Tolerance{1e-9, 1e-9});
    const auto count = static_cast<int64_t>(a.size());
    ExpectMatchesReference(op, {HostTensor::Of(DType::kF32, {count}, a), HostTensor::Of(DType::kF32, {count}, b)},
                           Tolerance{1e-6, 1e-6});
  }
  const std::vector<double> limited = At(Function::kHermiteH, {0, 0, 0, 0}, {513, NAN, -INFINITY, INFINITY});
  EXPECT_TRUE(std::isnan(limited[0]) && std::isnan(limited[1]) && limited[2] == 0 && std::isnan(limited[3]));
}

// All pairs of numbers at the ends of the type's range, in all lanes of a vector.
template <class T>
void ExpectExactLimits(DType dtype) {
  using Limits = std::numeric_limits<T>;
  const T step = Limits::denorm_min(), next = std::nextafter(T{1}, T{2});
  const std::vector<T> numbers = {T{0},          T{1},
                                  next,          T{1.5},
                                  step,          Limits::min(),
                                  Limits::max(), Limits::infinity(),
                                  T{3},          std::nextafter(Limits::min(), T{0}),
                                  T{0.1f},       static_cast<T>(1e30)};
  std::vector<double> a, b;
  for (const T x : numbers) {
    for (const T y : numbers) {
      for (int signs = 0; signs < 4; ++signs) {
        a.push_back(signs & 1 ? -x : x);
        b.push_back(signs & 2 ? -y : y);
      }
    }
    a.push_back(x);
    b.push_back(NAN);
    a.push_back(NAN);
    b.push_back(x);
  }
  const auto of = [&](const std::vector<double>& v) {
    return HostTensor::Of(dtype, {static_cast<int64_t>(v.size())}, v);
  };
  for (const int64_t variant : kVariants) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(Elementary(variant), {of(a), of(b)}, &out).ok());
    for (size_t i = 0; variant <= SpecialBinary::kFmod && i < a.size(); ++i) {
      const T x = static_cast<T>(a[i]), y = static_cast<T>(b[i]),
              got = static_cast<T>(out[0].at(static_cast<int64_t>(i)));
      const T expected = variant == SpecialBinary::kNextafter  ? std::nextafter(x, y)
                         : variant == SpecialBinary::kCopysign ? std::copysign(x, y)
                         : variant == SpecialBinary::kFmod     ? std::fmod(x, y)
                                                               : std::hypot(x, y);
      const T error = variant == SpecialBinary::kHypot ? expected * Limits::epsilon() : T{0};
      const bool same = std::isnan(expected) ? std::isnan(got) : got == expected || std::fabs(got - expected) <= error;
      EXPECT_TRUE(same && (std::isnan(got) || std::signbit(got) == std::signbit(expected)))
          << x << ", " << y << ": expected " << expected << ", got " << got;
    }
    ExpectMatchesReference(Elementary(variant), {of(a), of(b)}, Tolerance{1e-6, 1e-6});
    for (size_t i = 0; variant == SpecialBinary::kAtan2 && i < a.size(); ++i) {  // also the sign of 0
      const double got = out[0].at(static_cast<int64_t>(i)), expected = std::atan2(a[i], b[i]);
      EXPECT_TRUE(std::isnan(expected) || std::signbit(got) == std::signbit(expected)) << a[i] << ", " << b[i];
    }
  }
  for (const int64_t variant : kChebyshevs) {
    ExpectMatchesReference(Elementary(variant), {of(a), of(b)}, Tolerance{1e-6, 1e-6});
  }
}

TEST(SpecialBinary, ElementaryLimits) {
  ExpectExactLimits<float>(DType::kF32);
  ExpectExactLimits<double>(DType::kF64);
}

TEST(SpecialBinary, EmptyAndInvalidInputs) {
  const auto zeros = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  ExpectMatchesReference(SpecialBinary{}, {zeros({0, 3}), zeros({0, 3})});
  ExpectError(SpecialBinary{}, {zeros({2}), zeros({3})}, {"'b'"});
  ExpectError(SpecialBinary{.variant = 1}, {zeros({2}), zeros({2})}, {"'variant'"});
}

// Values of mpmath with 60 digits.
TEST(SpecialBinary, DoublesNearLimits) {
  const auto expect = [](Function function, double a, double b, double expected) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(testing::Run(SpecialBinary{.function = function}, {F64({a}), F64({b})}, &out).ok());
    EXPECT_NEAR(out[0].at(0) / expected, 1, 1e-13) << static_cast<int>(function) << " of " << a << " and " << b;
  };
  expect(Function::kZeta, 1.5, 1e+250, 2e-125);
  expect(Function::kZeta, 1.5, 1e+300, 2e-150);
  expect(Function::kZeta, 1.000001, 1e+200, 999539.5890853545);
  expect(Function::kZeta, 3.0, 1e+150, 5e-301);
  expect(Function::kZeta, 2.0, 1e-100, 1e+200);
  expect(Function::kZeta, 100.0, 1000.0, 1.060934200387493e-299);
  expect(Function::kIgammac, 1e-100, 1e-300, 6.901983122333122e-98);
  expect(Function::kIgammac, 1e-100, 0.1, 1.8229239584193906e-100);
  expect(Function::kIgammac, 1e-08, 1.0, 2.1938393664027067e-09);
  expect(Function::kIgammac, 0.4, 1.1, 0.10413373180912133);
  expect(Function::kIgammac, 0.4, 0.001, 0.9289076021046669);
}

}  // namespace
}  // namespace polyop::testing
