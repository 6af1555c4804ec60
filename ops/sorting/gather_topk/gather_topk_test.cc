// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/gather_topk/gather_topk.h"

#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor Indices(DType dtype, const Shape& shape, int64_t rows, std::mt19937& rng) {
  return HostTensor::Uniform(dtype, shape, rng, 0, static_cast<double>(rows));
}

TEST(GatherTopk, GathersRowsOfEachBatchElement) {
  std::vector<HostTensor> out;
  const HostTensor data = HostTensor::Of(DType::kF32, {2, 3, 2}, {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15});
  ASSERT_TRUE(polyop::testing::Run(GatherTopk{}, {data, HostTensor::Of(DType::kI32, {2, 2}, {2, 0, 1, 1})}, &out).ok());
  EXPECT_EQ(ToString(out[0].shape()), "[2, 2, 2]");
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{4, 5, 0, 1, 12, 13, 12, 13}));
}

TEST(GatherTopk, MatchesReference) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  for (int round = 0; round < Rounds(120); ++round) {
    Shape data, indices;
    for (uint32_t d = rng() % 3; d > 0; --d) {
      data.push_back(static_cast<int64_t>(rng() % 4));
      indices.push_back(data[data.rank() - 1]);
    }
    const int64_t rows = 1 + static_cast<int64_t>(rng() % 30);
    data.push_back(rows);
    indices.push_back(static_cast<int64_t>(rng() % 40));
    for (uint32_t d = rng() % 3; d > 0; --d) data.push_back(static_cast<int64_t>(rng() % 6));
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(data), " by ", ToString(indices)));
    ExpectMatchesReference(GatherTopk{},
                           {HostTensor::Uniform(kTypes[rng() % 3], data, rng),
                            Indices(rng() % 2 ? DType::kI32 : DType::kI64, indices, rows, rng)},
                           {0, 0});
  }
  ExpectMatchesReference(
      GatherTopk{}, {HostTensor::Uniform(DType::kI64, {2, 9}, rng, -99, 99), Indices(DType::kI64, {2, 5}, 9, rng)});
  ExpectMatchesReference(
      GatherTopk{}, {HostTensor::Uniform(DType::kI32, {2, 9, 4}, rng, -99, 99), Indices(DType::kI32, {2, 5}, 9, rng)});
}

TEST(GatherTopk, ManyRowsInParallel) {
  std::mt19937 rng(2);
  for (int64_t width : {1, 4, 85}) {
    ExpectMatchesReference(
        GatherTopk{},
        {HostTensor::Uniform(DType::kF32, {3, 20000, width}, rng), Indices(DType::kI64, {3, 15000}, 20000, rng)},
        {0, 0});
  }
}

TEST(GatherTopk, EveryType) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64, DType::kU8, DType::kBool}) {
    std::vector<HostTensor> out;
    ASSERT_TRUE(polyop::testing::Run(GatherTopk{},
                                     {HostTensor::Of(dtype, {3}, {1, 0, 1}), HostTensor::Of(DType::kI32, {2}, {1, 2})},
                                     &out)
                    .ok());
    EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 1})) << NameOf(dtype);
  }
}

TEST(GatherTopk, RejectsInvalidInputs) {
  const HostTensor data = HostTensor::Full(DType::kF32, {2, 5, 3}, 1);
  const auto indices = [](const Shape& shape, const std::vector<double>& v) {
    return HostTensor::Of(DType::kI32, shape, v);
  };
  ExpectError(GatherTopk{}, {data, indices({2, 2}, {0, 1, 4, 5})},
              {"'indices' at flat index 3: expected a row of 'data' in [0, 5), got 5"});
  ExpectError(GatherTopk{}, {data, indices({2, 1}, {-1, 0})},
              {"'indices' at flat index 0: expected a row of 'data' in [0, 5), got -1"});
  ExpectError(GatherTopk{}, {data, indices({3, 1}, {0, 0, 0})}, {"'indices'", "to be B = 2", "(shape [3, 1] for"});
  ExpectError(GatherTopk{}, {HostTensor::Full(DType::kF32, {5}, 1), indices({1, 1}, {0})},
              {"'indices': expected rank", "got 2"});
  ExpectError(GatherTopk{}, {HostTensor::Full(DType::kF32, {2, 0, 3}, 1), indices({2, 1}, {0, 0})},
              {"in [0, 0), got 0"});
  ExpectError(GatherTopk{}, {data, HostTensor::Full(DType::kF32, {2, 1}, 0)}, {"no kernel takes inputs"});
}

}  // namespace
}  // namespace polyop::testing
