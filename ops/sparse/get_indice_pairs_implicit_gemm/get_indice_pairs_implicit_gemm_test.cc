// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/get_indice_pairs_implicit_gemm/get_indice_pairs_implicit_gemm.h"

#include "ops/sparse/sparse_test.h"
#include "testing/alignment.h"

namespace polyop::testing {
namespace {

using Op = GetIndicePairsImplicitGemm;

std::vector<std::vector<double>> Pairs(const Op& op, const HostTensor& indices) {
  std::vector<HostTensor> out;
  const Status status = Run(op, {indices}, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<std::vector<double>> values;
  for (const HostTensor& t : out) values.push_back(t.ToDoubles());
  return values;
}

TEST(GetIndicePairsImplicitGemm, StridedOutputsAreInAscendingOrder) {
  const Op op = LineOf<Op>(6, 3, 2, 1);  // outputs at 0, 1, 2
  const auto out = Pairs(op, Line({5, 1}));
  ASSERT_EQ(out.size(), 5u);
  EXPECT_EQ(out[0], (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2}));
  // i = 2 o - 1 + r
  EXPECT_EQ(out[1], (std::vector<double>{-1, 1, -1, -1, -1, -1, 1, -1, 0}));
  EXPECT_EQ(out[2], (std::vector<double>{4, 1, 4}));
  EXPECT_EQ(out[3], (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(out[4], (std::vector<double>{3}));
}

TEST(GetIndicePairsImplicitGemm, SubmanifoldKeepsTheInputs) {
  Op op = LineOf<Op>(6, 3, 9, 7);  // subm ignores stride and padding
  op.subm = true;
  const auto out = Pairs(op, Line({3, 1, 2}));
  EXPECT_EQ(out[0], Line({3, 1, 2}).ToDoubles());
  EXPECT_EQ(out[1], (std::vector<double>{2, -1, 1, 0, 1, 2, -1, 2, 0}));
  EXPECT_EQ(out[2], (std::vector<double>{3, 6, 7}));
}

TEST(GetIndicePairsImplicitGemm, UsesTheFirstRowOfACell) {
  Op op = LineOf<Op>(6, 3, 1, 1);
  EXPECT_EQ(Pairs(op, Line({2, 2}))[1], (std::vector<double>{-1, -1, 0, -1, 0, -1, 0, -1, -1}));
  op.subm = true;  // but the centre is the row itself
  EXPECT_EQ(Pairs(op, Line({2, 2, 3}))[1], (std::vector<double>{-1, -1, 0, 0, 1, 2, 2, 2, -1}));
}

TEST(GetIndicePairsImplicitGemm, TransposedConvolution) {
  Op op = LineOf<Op>(3, 3, 2, 1);  // outputs 2 i - 1 + r, five cells
  op.transpose = true;
  const auto out = Pairs(op, Line({1}));
  EXPECT_EQ(out[0], (std::vector<double>{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}));
  EXPECT_EQ(out[1], (std::vector<double>{0, -1, -1, -1, 0, -1, -1, -1, 0}));
}

TEST(GetIndicePairsImplicitGemm, MoreThan32OffsetsHaveSeveralMaskWords) {
  Op op = LineOf<Op>(100, 65, 1, 64);
  const auto out = Pairs(op, Line({0, 64}));
  ASSERT_EQ(out[2].size(), 3 * out[3].size());
  EXPECT_EQ(out[2][0], 0.0);  // cell 0 contributes to output 0 at offset 64
  EXPECT_EQ(out[2][2], 1.0);
}

TEST(GetIndicePairsImplicitGemm, GridsWithMoreThan32BitsOfCells) {
  std::mt19937 rng(3);
  Op op;
  op.spatial_shape = {1 << 20, 1 << 20, 1 << 20};
  op.padding = {1, 1, 1};
  const HostTensor indices = VoxelsIn({1, 4, 4, 4}, 30, DType::kI64, rng);
  ExpectMatchesReference(op, {indices});
  op.stride = {2, 2, 2};
  ExpectMatchesReference(op, {indices});
  op.subm = true;
  ExpectMatchesReference(op, {indices});
}

TEST(GetIndicePairsImplicitGemm, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(120); ++round) {
    Op op = RandomRule<Op>(rng);
    const int64_t count = rng() % 5 == 0 ? rng() % 700 : rng() % 60;
    SCOPED_TRACE(Concat("round ", round, ": ", count, " voxels"));
    ExpectMatchesReference(op, {VoxelsOf(op, count, rng() % 2 ? DType::kI32 : DType::kI64, rng)});
  }
}

TEST(GetIndicePairsImplicitGemm, ManyVoxelsOnManyTasks) {
  std::mt19937 rng(2);
  Op op;
  op.batch_size = 2;
  op.spatial_shape = {9, 90, 80};
  op.subm = true;
  const HostTensor indices = VoxelsOf(op, 9000, DType::kI32, rng);
  ExpectMatchesReference(op, {indices});
  op.subm = false;
  op.stride = {2, 2, 2};
  op.padding = {1, 1, 1};
  ExpectMatchesReference(op, {indices});
}

TEST(GetIndicePairsImplicitGemm, SameAtAnyAlignment) {
  std::mt19937 rng(4);
  Op op;
  op.padding = {1, 1, 1};
  ExpectSameAtAnyAlignment(op, {VoxelsOf(op, 200, DType::kI32, rng)});
}

TEST(GetIndicePairsImplicitGemm, RejectsInvalidInputs) {
  const auto voxel = [](const std::vector<double>& at) { return HostTensor::Of(DType::kI32, {1, 4}, at); };
  const Op op;
  ExpectError(op, {voxel({1, 0, 0, 0})},
              {"'indices'[0]: expected a cell of a batch of 1 grids of 8 x 8 x 8, got (1, 0, 0, 0)"});
  ExpectError(op, {voxel({0, 8, 0, 0})}, {"'indices'[0]: expected a cell", "got (0, 8, 0, 0)"});
  ExpectError(op, {voxel({0, 0, 0, -1})}, {"'indices'[0]: expected a cell", "got (0, 0, 0, -1)"});
  ExpectError(op, {HostTensor::Full(DType::kI32, {2, 3}, 0)}, {"'indices'", "[2, 3]"});
  const std::pair<std::string, AttrValue> batch = {"batch_size", AttrValue::Int(1)};
  const auto rejects = [&](std::vector<std::pair<std::string, AttrValue>> attributes,
                           const std::vector<std::string>& parts) {
    attributes.insert(attributes.begin(), batch);
    ExpectAttributeError(*FindOp(Op::kName), attributes, parts);
  };
  const std::pair<std::string, AttrValue> shape = {"spatial_shape", AttrValue::Ints({4, 4, 4})},
                                          filter = {"ksize", AttrValue::Ints({3, 3, 2})};
  rejects({shape}, {"'ksize'"});
  rejects({shape, filter, {"subm", AttrValue::Int(1)}},
          {"'ksize': expected odd numbers because subm = 1, got [3, 3, 2]"});
  rejects({shape, filter, {"is_train", AttrValue::Int(1)}}, {"'is_train': expected 0, got 1"});
  rejects({shape, {"ksize", AttrValue::Ints({5, 1, 1})}}, {"on axis 0 of (z, y, x), got 0"});
  rejects({shape, {"ksize", AttrValue::Ints({64, 65, 1})}}, {"'ksize': expected at most 4096 cells, got [64, 65, 1]"});
  rejects({{"spatial_shape", AttrValue::Ints({2147483647, 2147483647, 4})}, filter},
          {"expected fewer than 2^63 cells"});
}

}  // namespace
}  // namespace polyop::testing
