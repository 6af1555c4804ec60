// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/get_indice_pairs/get_indice_pairs.h"

#include "core/call.h"
#include "ops/sparse/sparse_test.h"
#include "testing/alignment.h"

namespace polyop::testing {
namespace {

using Op = GetIndicePairs;

TEST(GetIndicePairs, ListsThePairsOfEachOffset) {
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(LineOf<Op>(6, 3, 2, 1), {Line({5, 1, 3})}, &out).ok());
  EXPECT_EQ(out[0].ToDoubles(), (std::vector<double>{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2}));
  // Inputs, then outputs, of the three offsets: i = 2 o - 1 + r.
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{1, 2, -1, -1, -1, -1, 1, 2, 0, 1, 2, -1, -1, -1, -1, 0, 1, 2}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{2, 0, 3}));
  EXPECT_EQ(out[3].ToDoubles(), (std::vector<double>{3}));
}

TEST(GetIndicePairs, SubmanifoldCountsOnlyTheFirstHalf) {
  Op op = LineOf<Op>(6, 3, 1, 0);
  op.subm = true;
  std::vector<HostTensor> out;
  ASSERT_TRUE(testing::Run(op, {Line({3, 1, 2})}, &out).ok());
  EXPECT_EQ(out[1].ToDoubles(), (std::vector<double>{2, 1, -1, 0, 1, 2, 0, 2, -1, 0, 2, -1, 0, 1, 2, 2, 1, -1}));
  EXPECT_EQ(out[2].ToDoubles(), (std::vector<double>{2, 0, 0}));
}

TEST(GetIndicePairs, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(120); ++round) {
    const Op op = RandomRule<Op>(rng);
    const int64_t count = rng() % 5 == 0 ? rng() % 700 : rng() % 60;
    SCOPED_TRACE(Concat("round ", round, ": ", count, " voxels"));
    ExpectMatchesReference(op, {VoxelsOf(op, count, rng() % 2 ? DType::kI32 : DType::kI64, rng)});
  }
}

// TensorRT allocates the maximum number of outputs, which is the next convolution's number of inputs.
TEST(GetIndicePairs, MaximaOfStackedConvolutionsDoNotMultiply) {
  class NoOutputs : public OutputSource {
   public:
    bool Requested(int) override { return true; }
    Status Allocate(int, DType, const Shape&, void**) override { return Internal("nothing is allocated"); }
  } none;
  int64_t rows = 200000;
  Op op;
  op.spatial_shape = {41, 1440, 1440};
  op.ksize = {3, 3, 3};
  op.stride = {2, 2, 2};
  op.padding = {1, 1, 1};
  for (int stage = 0; stage < 4; ++stage) {
    const AnyTensor indices{nullptr, DType::kI32, true, Shape{rows, 4}};
    PreparedCall call;
    ASSERT_TRUE(Prepare(*FindOp(Op::kName), Device::kCpu, &op, {&indices, 1}, none, &call).ok());
    const SparseGrid grid = op.Grid();
    const int64_t cells = op.batch_size * grid.out[0] * grid.out[1] * grid.out[2];
    EXPECT_LE(call.max_shapes[0][0], cells) << "stage " << stage;
    rows = call.max_shapes[0][0];
    for (size_t a = 0; a < 3; ++a) op.spatial_shape[a] = grid.out[a];
  }
  EXPECT_EQ(rows, 3 * 90 * 90);
}

TEST(GetIndicePairs, SameAtAnyAlignment) {
  std::mt19937 rng(4);
  Op op;
  op.subm = true;
  ExpectSameAtAnyAlignment(op, {VoxelsOf(op, 200, DType::kI32, rng)});
}

TEST(GetIndicePairs, RejectsInvalidInputs) {
  ExpectError(Op{}, {HostTensor::Of(DType::kI64, {2, 4}, {0, 1, 1, 1, 0, 0, -2, 0})},
              {"'indices'[1]: expected a cell of a batch of ", " grids of 8 x 8 x 8, got (0, 0, -2, 0)"});
  ExpectAttributeError(*FindOp(Op::kName), {{"batch_size", AttrValue::Int(0)}}, {"'batch_size': expected", "got 0"});
}

}  // namespace
}  // namespace polyop::testing
