// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/scatter_nd/scatter_nd.h"

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}
HostTensor I64(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kI64, shape, values);
}
std::vector<double> Scatter(const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> outputs;
  const Status status = Run(ScatterND{}, inputs, &outputs);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? outputs[0].ToDoubles() : std::vector<double>{};
}

TEST(ScatterND, ExamplesOfTheOnnxDocumentation) {
  EXPECT_EQ(Scatter({F32({8}, {1, 2, 3, 4, 5, 6, 7, 8}), I64({4, 1}, {4, 3, 1, 7}), F32({4}, {9, 10, 11, 12})}),
            (std::vector<double>{1, 11, 3, 10, 9, 6, 7, 12}));
  EXPECT_EQ(Scatter({F32({3, 2}, {1, 2, 3, 4, 5, 6}), I64({2, 1}, {0, -1}), F32({2, 2}, {7, 8, 9, 10})}),
            (std::vector<double>{7, 8, 3, 4, 9, 10}));
  EXPECT_EQ(Scatter({F32({2, 2}, {1, 2, 3, 4}), I64({2}, {1, -2}), F32({}, {9})}), (std::vector<double>{1, 2, 9, 4}));
}

TEST(ScatterND, TheLastOfDuplicatesWins) {
  EXPECT_EQ(Scatter({F32({3}, {0, 0, 0}), I64({4, 1}, {1, 2, -2, 2}), F32({4}, {5, 6, 7, 8})}),
            (std::vector<double>{0, 7, 8}));
  std::mt19937 rng(1);  // long slices are divided among tasks differently from short ones
  for (int64_t slice : {3, 200}) {
    ExpectMatchesReference(
        ScatterND{},
        {HostTensor::Uniform(DType::kF32, {20, slice}, rng), HostTensor::Uniform(DType::kI64, {3000, 1}, rng, -20, 20),
         HostTensor::Uniform(DType::kF32, {3000, slice}, rng)},
        {0, 0});
  }
}

TEST(ScatterND, EmptyIndices) {
  EXPECT_EQ(Scatter({F32({2}, {1, 2}), I64({0, 1}, {}), F32({0}, {})}), (std::vector<double>{1, 2}));
  EXPECT_EQ(Scatter({F32({2}, {1, 2}), I64({3, 0}, {}), F32({3, 2}, {3, 4, 5, 6, 7, 8})}),
            (std::vector<double>{7, 8}));  // empty tuples select the entire tensor
  EXPECT_EQ(Scatter({F32({2, 0}, {}), I64({1, 1}, {1}), F32({1, 0}, {})}).size(), 0u);
  EXPECT_EQ(Scatter({F32({}, {1}), I64({0}, {}), F32({}, {5})}), (std::vector<double>{5}));
}

TEST(ScatterND, RandomShapesTypesAndOrders) {
  std::mt19937 rng(2);
  const DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
  for (int round = 0; round < Rounds(150); ++round) {
    Shape data, updates, indices;
    const int rank = 1 + static_cast<int>(rng() % 4), depth = static_cast<int>(rng() % static_cast<uint32_t>(rank + 1));
    for (int d = 0; d < rank; ++d) data.push_back(1 + static_cast<int64_t>(rng() % 9));
    int64_t tuples = 1;
    for (uint32_t d = rng() % 3; d > 0; --d) {
      indices.push_back(static_cast<int64_t>(rng() % 12));
      updates.push_back(indices[indices.rank() - 1]);
      tuples *= updates[updates.rank() - 1];
    }
    indices.push_back(depth);
    for (int d = depth; d < rank; ++d) updates.push_back(data[d]);
    HostTensor index(rng() % 2 ? DType::kI32 : DType::kI64, indices);
    for (int64_t t = 0; t < tuples; ++t) {
      for (int d = 0; d < depth; ++d) {
        index.set(t * depth + d,
                  static_cast<double>(rng() % static_cast<uint64_t>(2 * data[d])) - static_cast<double>(data[d]));
      }
    }
    const DType dtype = kTypes[rng() % 4];
    SCOPED_TRACE(Concat("round ", round, ": ", ToString(data), " at ", ToString(indices)));
    ExpectMatchesReference(
        ScatterND{}, {HostTensor::Uniform(dtype, data, rng), index, HostTensor::Uniform(dtype, updates, rng)}, {0, 0});
  }
}

TEST(ScatterND, EveryType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    for (DType index : {DType::kI32, DType::kI64}) {
      std::vector<HostTensor> outputs;
      ASSERT_TRUE(polyop::testing::Run(ScatterND{},
                                       {HostTensor::Of(dtype, {3}, {1, 0, 1}), HostTensor::Of(index, {2, 1}, {1, 0}),
                                        HostTensor::Of(dtype, {2}, {1, 0})},
                                       &outputs)
                      .ok());
      EXPECT_EQ(outputs[0].ToDoubles(), (std::vector<double>{0, 1, 1})) << NameOf(dtype);
      EXPECT_EQ(outputs[0].dtype(), dtype);
    }
  }
}

// Large enough to be streamed past the caches and for many tasks, with ascending and unordered indices.
TEST(ScatterND, LargeTensors) {
  std::mt19937 rng(3);
  const HostTensor data = HostTensor::Uniform(DType::kF32, {1500, 1001}, rng);
  HostTensor rising(DType::kI64, {700, 1}), elements(DType::kI32, {50000, 2});
  for (int64_t i = 0; i < 700; ++i) rising.set(i, static_cast<double>(2 * i + 3));
  for (int64_t i = 0; i < 50000; ++i) {
    elements.set(2 * i, static_cast<double>(i / 500));
    elements.set(2 * i + 1, static_cast<double>(i % 500));
  }
  ExpectMatchesReference(ScatterND{}, {data, rising, HostTensor::Uniform(DType::kF32, {700, 1001}, rng)}, {0, 0});
  ExpectMatchesReference(ScatterND{}, {data, elements, HostTensor::Uniform(DType::kF32, {50000}, rng)}, {0, 0});
}

TEST(ScatterND, RejectsInvalidInputs) {
  const HostTensor data = F32({3, 4}, std::vector<double>(12, 0));
  const auto error = [&](const HostTensor& indices, const HostTensor& updates, const std::vector<std::string>& parts) {
    ExpectError(ScatterND{}, {data, indices, updates}, parts);
  };
  error(I64({2, 1}, {0, 3}), F32({2, 4}, std::vector<double>(8, 0)),
        {"'indices': expected a value in [-3, 3) for dimension 0 of 'data', got 3 in tuple 1"});
  error(I64({1, 2}, {2, -5}), F32({1}, {0}),
        {"expected a value in [-4, 4) for dimension 1 of 'data', got -5 in tuple 0"});
  error(I64({1, 2}, {-9e18, 0}), F32({1}, {0}), {"got -9000000000000000000 in tuple 0"});
  error(I64({1, 3}, {0, 0, 0}), F32({1}, {0}),
        {"'indices': expected at most 2 in the last dimension for 'data' of shape [3, 4], got shape [1, 3]"});
  error(I64({2, 1}, {0, 1}), F32({2, 3}, std::vector<double>(6, 0)),
        {"'updates': expected shape [2, 4]", "got [2, 3]"});
  error(I64({2, 1}, {0, 1}), F32({8}, std::vector<double>(8, 0)), {"'updates': expected shape [2, 4]", "got [8]"});
  error(I64({}, {0}), F32({4}, std::vector<double>(4, 0)), {"'indices': expected rank", "got 0"});
  error(I64({2, 1}, {0, 1}), HostTensor::Full(DType::kF16, {2, 4}, 0), {"no kernel takes inputs"});
}

TEST(ScatterND, SameAtAnyAlignment) {
  std::mt19937 rng(5);
  ExpectSameAtAnyAlignment(
      ScatterND{}, {HostTensor::Uniform(DType::kF32, {1100, 1101}, rng), HostTensor::Of(DType::kI64, {2, 1}, {7, 1099}),
                    HostTensor::Uniform(DType::kF32, {2, 1101}, rng)});
}

}  // namespace
}  // namespace polyop::testing
