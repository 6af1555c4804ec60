#include "ops/argsort/argsort.h"

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

class ArgsortRandom : public ::testing::TestWithParam<DType> {};

TEST_P(ArgsortRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int64_t count : {0, 1, 2, 17, 300, 9000, 40000}) {
    for (double limit : {0.0, 3.0, 1e4, GetParam() == DType::kI64 ? 9e18 : 2e9}) {
      SCOPED_TRACE(Concat(count, " integers up to ", limit));
      ExpectMatchesReference(Argsort{}, {HostTensor::Uniform(GetParam(), {count}, rng, -limit, limit)});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ArgsortRandom, ::testing::Values(DType::kI32, DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(Argsort, IsStable) {
  const double lowest = -9223372036854775808.0;
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(Argsort{}, {HostTensor::Of(DType::kI64, {6}, {5, -1, 5, lowest, -1, 0})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{3, 1, 4, 5, 0, 2}));
}

TEST(Argsort, SameAtAnyAlignment) {
  std::mt19937 rng(2);
  ExpectSameAtAnyAlignment(Argsort{}, {HostTensor::Uniform(DType::kI32, {20000}, rng, -100, 100)});
}

TEST(Argsort, RejectsInvalidInputs) {
  ExpectError(Argsort{}, {HostTensor::Full(DType::kI64, {2, 2}, 0)}, {"'x': expected rank 1, got 2"});
  ExpectError(Argsort{}, {HostTensor::Full(DType::kF32, {2}, 0)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing
