// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/search_sorted/search_sorted.h"

#include <algorithm>
#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor Numbers(const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

// Searches the values several times, which fills vectors, and returns the results of the last, which do not fill one.
std::vector<double> Search(const std::vector<double>& sequence, const std::vector<double>& values, int64_t right) {
  std::vector<double> repeated;
  for (int k = 0; k < 17; ++k) repeated.insert(repeated.end(), values.begin(), values.end());
  std::vector<HostTensor> out;
  const Status status = testing::Run(SearchSorted{.right = right}, {Numbers(sequence), Numbers(repeated)}, &out);
  EXPECT_TRUE(status.ok());
  if (!status.ok()) return {};
  const std::vector<double> found = out[0].ToDoubles();
  const size_t count = values.size();
  for (size_t i = 0; i + count < found.size(); ++i) EXPECT_EQ(found[i], found[i + count]);
  return {found.end() - static_cast<std::ptrdiff_t>(count), found.end()};
}

class SearchSortedTest : public ::testing::TestWithParam<DType> {};

TEST_P(SearchSortedTest, MatchesReference) {
  std::mt19937 rng(1);
  for (const int64_t length : {0, 1, 2, 7, 64, 1000}) {
    for (const bool sorted : {true, false}) {
      std::vector<double> numbers(static_cast<size_t>(6 * length));
      for (double& number : numbers) number = static_cast<double>(rng() % 200);
      for (int64_t row = 0; sorted && row < 6; ++row) {
        std::sort(numbers.begin() + row * length, numbers.begin() + (row + 1) * length);
      }
      const HostTensor sequences = HostTensor::Of(GetParam(), {2, 3, length}, numbers);
      const HostTensor values = HostTensor::Uniform(GetParam(), {2, 3, 50}, rng, -10, 210);
      for (const int64_t right : {0, 1}) ExpectMatchesReference(SearchSorted{.right = right}, {sequences, values});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SearchSortedTest, ::testing::Values(DType::kF32, DType::kF64, DType::kI32, DType::kI64),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(SearchSorted, EqualElements) {
  EXPECT_EQ(Search({1, 2, 2, 5}, {0, 2, 5, 9, -0.0}, 0), (std::vector<double>{0, 1, 3, 4, 0}));
  EXPECT_EQ(Search({1, 2, 2, 5}, {0, 2, 5, 9, -0.0}, 1), (std::vector<double>{0, 3, 4, 4, 0}));
}

// The results of torch.searchsorted.
TEST(SearchSorted, NanAndInfinities) {
  EXPECT_EQ(Search({1, 2, INFINITY}, {NAN, INFINITY, -INFINITY}, 0), (std::vector<double>{3, 2, 0}));
  EXPECT_EQ(Search({1, 2, INFINITY}, {NAN, INFINITY, -INFINITY}, 1), (std::vector<double>{3, 3, 0}));
  EXPECT_EQ(Search({1, 2, NAN}, {0, 1.5, 3, NAN}, 0), (std::vector<double>{0, 1, 3, 3}));
  EXPECT_EQ(Search({1, NAN, NAN}, {0}, 0), (std::vector<double>{3}));
}

TEST(SearchSorted, LargeIntegersAreCompared) {
  const HostTensor sequence = HostTensor::Of(DType::kI32, {2}, {2147483646, 2147483647});
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(SearchSorted{}, {sequence, sequence}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 1}));
}

TEST(SearchSorted, RejectsInvalidInputs) {
  const HostTensor one = HostTensor::Full(DType::kF32, {2, 3}, 0);
  ExpectError(SearchSorted{}, {one, HostTensor::Full(DType::kF32, {3, 3}, 0)}, {"'values'"});
}

}  // namespace
}  // namespace polyop::testing
