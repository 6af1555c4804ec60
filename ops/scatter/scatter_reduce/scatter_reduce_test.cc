// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/scatter_reduce/scatter_reduce.h"

#include <cmath>

#include "testing/testing.h"

namespace polyop::testing {
namespace {

using Reduction = ScatterReduce::Reduction;
constexpr Reduction kReductions[] = {Reduction::kAdd, Reduction::kMul, Reduction::kMax, Reduction::kMin,
                                     Reduction::kMean};

HostTensor F32(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kF32, shape, values);
}
HostTensor I64(const Shape& shape, const std::vector<double>& values) {
  return HostTensor::Of(DType::kI64, shape, values);
}

std::vector<double> Results(const ScatterReduce& op, const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> out;
  const Status status = Run(op, inputs, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

// Results of torch.scatter_reduce.
TEST(ScatterReduce, KnownResults) {
  const std::vector<HostTensor> inputs = {F32({4}, {1, 2, 3, 4}), I64({5}, {0, 1, 0, 1, 3}),
                                          F32({5}, {5, -6, 7, 8, 9})};
  using Numbers = std::vector<double>;
  EXPECT_EQ(Results({.reduction = Reduction::kAdd}, inputs), (Numbers{13, 4, 3, 13}));
  EXPECT_EQ(Results({.reduction = Reduction::kMul}, inputs), (Numbers{35, -96, 3, 36}));
  EXPECT_EQ(Results({.reduction = Reduction::kMax}, inputs), (Numbers{7, 8, 3, 9}));
  EXPECT_EQ(Results({.reduction = Reduction::kMin}, inputs), (Numbers{1, -6, 3, 4}));
  EXPECT_EQ(Results({.reduction = Reduction::kMean, .include_self = 0}, inputs), (Numbers{6, 1, 3, 9}));
  EXPECT_EQ(Results({.reduction = Reduction::kMax, .include_self = 0}, inputs), (Numbers{7, 8, 3, 9}));
  // index_add: rows 1, 1 and -1
  EXPECT_EQ(Results({}, {F32({2, 2}, {1, 2, 3, 4}), I64({3}, {1, 1, -2}), F32({3, 2}, {1, 1, 2, 2, 5, 6})}),
            (Numbers{6, 8, 6, 7}));
}

TEST(ScatterReduce, NotANumber) {
  const std::vector<HostTensor> inputs = {F32({3}, {NAN, 2, 3}), I64({3}, {0, 1, 1}), F32({3}, {5, NAN, 7})};
  for (const Reduction reduction : kReductions) {
    const std::vector<double> got = Results({.reduction = reduction}, inputs);
    EXPECT_TRUE(std::isnan(got[0]) && std::isnan(got[1]) && got[2] == 3);
    ExpectMatchesReference(ScatterReduce{.reduction = reduction}, inputs);
  }
}

TEST(ScatterReduce, RandomShapesAndTypes) {
  std::mt19937 rng(1);
  const DType kTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64};
  for (int round = 0; round < Rounds(120); ++round) {
    const DType dtype = kTypes[rng() % 4], index_type = rng() % 2 ? DType::kI32 : DType::kI64;
    const int rank = 1 + static_cast<int>(rng() % 3), axis = static_cast<int>(rng() % static_cast<uint32_t>(rank));
    const bool slices = rank > 1 && rng() % 2;
    Shape data, updates;
    for (int d = 0; d < rank; ++d) {
      const int64_t size = 1 + static_cast<int64_t>(rng() % (round % 10 == 0 ? 300 : 9));
      data.push_back(size);
      const int64_t part = slices || rng() % 2 ? size : 1 + static_cast<int64_t>(rng() % static_cast<uint64_t>(size));
      updates.push_back(d == axis ? static_cast<int64_t>(rng() % 13) : part);
    }
    const auto length = static_cast<double>(data[axis]);
    ScatterReduce op{.axis = rng() % 2 ? axis : axis - rank, .reduction = kReductions[rng() % 5]};
    op.include_self = static_cast<int64_t>(rng() % 2);
    if (op.reduction == Reduction::kMean && !IsReal(dtype)) op.reduction = Reduction::kAdd;
    const Shape indices = slices ? Shape{updates[axis]} : updates;
    ExpectMatchesReference(
        op,
        {HostTensor::Uniform(dtype, data, rng, -3, 3), HostTensor::Uniform(index_type, indices, rng, -length, length),
         HostTensor::Uniform(dtype, updates, rng, -3, 3)},
        Tolerance{1e-4, 1e-4});
  }
}

TEST(ScatterReduce, EmptyAndInvalidInputs) {
  const auto zeros = [](const Shape& shape) { return HostTensor::Full(DType::kF32, shape, 0); };
  EXPECT_EQ(Results({}, {F32({2}, {1, 2}), I64({0}, {}), F32({0}, {})}), (std::vector<double>{1, 2}));
  EXPECT_TRUE(Results({.axis = 1}, {zeros({2, 0}), I64({2, 0}, {}), zeros({2, 0})}).empty());
  for (const int64_t axis : {0, 1, 2}) {
    for (const Shape& none : {Shape{0, 4, 1}, Shape{2, 0, 1}, Shape{2, 4, 0}}) {
      EXPECT_EQ(Results({.axis = axis}, {zeros({2, 4, 1}), I64(none, {}), zeros(none)}), std::vector<double>(8, 0));
    }
  }
  ExpectError(ScatterReduce{}, {zeros({3}), I64({1}, {3}), zeros({1})}, {"'indices'", "[-3, 3)", "got 3"});
  ExpectError(ScatterReduce{}, {zeros({3}), I64({1}, {-4}), zeros({1})}, {"'indices'", "[-3, 3)", "got -4"});
  ExpectError(ScatterReduce{}, {zeros({}), I64({1}, {0}), zeros({1})}, {"'axis'"});
  ExpectError(ScatterReduce{.axis = 2}, {zeros({3, 3}), I64({1}, {0}), zeros({1, 3})}, {"'axis'"});
  ExpectError(ScatterReduce{}, {zeros({3, 3}), I64({1}, {0}), zeros({3})}, {"'updates'"});
  ExpectError(ScatterReduce{}, {zeros({3, 3}), I64({1}, {0}), zeros({1, 2})}, {"'updates'"});
  ExpectError(ScatterReduce{}, {zeros({3, 3}), I64({2}, {0, 0}), zeros({1, 3})}, {"'indices'"});
  ExpectError(ScatterReduce{}, {zeros({3, 3}), I64({1, 3}, {0, 0, 0}), zeros({1, 2})}, {"'indices'"});
  const HostTensor whole = HostTensor::Full(DType::kI32, {3}, 1);
  ExpectError(ScatterReduce{.reduction = Reduction::kMean}, {whole, I64({3}, {0, 1, 2}), whole}, {"'data'", "real"});
}

}  // namespace
}  // namespace polyop::testing
