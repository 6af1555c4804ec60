#include "ops/bev_pool/bev_pool.h"

#include <cmath>

#include "testing/alignment.h"
#include "testing/testing.h"

namespace polyop::testing {
namespace {

struct Scene {
  int64_t pictures = 2, depths = 5, height = 3, width = 4, channels = 8;
  int64_t ranks = 60, intervals = 12;
};

BevPool View(int64_t height, int64_t width) {
  BevPool op;
  op.out_height = height;
  op.out_width = width;
  return op;
}

// Intervals one behind the other; some are empty, some of them of the same cell.
std::vector<HostTensor> Inputs(const Scene& s, DType type, DType index, int64_t cells, std::mt19937& rng) {
  const auto draw = [&](int64_t limit) {
    HostTensor ranks(index, {s.ranks});
    for (int64_t i = 0; i < s.ranks; ++i) ranks.set(i, static_cast<double>(rng() % static_cast<uint64_t>(limit)));
    return ranks;
  };
  HostTensor starts(index, {s.intervals}), lengths(index, {s.intervals});
  int64_t at = 0;
  for (int64_t j = 0; j < s.intervals; ++j) {
    const int64_t length = std::min<int64_t>(s.ranks - at, static_cast<int64_t>(rng() % 11));
    starts.set(j, static_cast<double>(at));
    lengths.set(j, static_cast<double>(length));
    at += length;
  }
  return {HostTensor::Uniform(type, {s.pictures, s.depths, s.height, s.width}, rng, 0, 1),
          HostTensor::Uniform(type, {s.pictures, s.height, s.width, s.channels}, rng),
          draw(s.pictures * s.depths * s.height * s.width),
          draw(s.pictures * s.height * s.width),
          draw(cells),
          starts,
          lengths};
}

class BevPoolRandom : public ::testing::TestWithParam<DType> {};

TEST_P(BevPoolRandom, MatchesReference) {
  std::mt19937 rng(1);
  for (int round = 0; round < Rounds(80); ++round) {
    Scene s;
    s.channels = rng() % 3 ? rng() % 70 : 80;
    s.ranks = rng() % 200;
    s.intervals = rng() % 40;
    const BevPool op = View(1 + rng() % 9, 1 + rng() % 9);
    SCOPED_TRACE(Concat("round ", round, ": ", s.ranks, " ranks of ", s.channels, " channels"));
    ExpectMatchesReference(
        op, Inputs(s, GetParam(), rng() % 2 ? DType::kI32 : DType::kI64, op.out_height * op.out_width, rng),
        ToleranceFor(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BevPoolRandom, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

HostTensor I32(const std::vector<double>& values) {
  return HostTensor::Of(DType::kI32, {static_cast<int64_t>(values.size())}, values);
}

// One picture of 1 x 2 pixels with two depths and one channel.
std::vector<HostTensor> Small(const std::vector<double>& ranks_bev, const std::vector<double>& starts,
                              const std::vector<double>& lengths) {
  return {HostTensor::Of(DType::kF32, {1, 2, 1, 2}, {1, 2, 3, 4}),
          HostTensor::Of(DType::kF32, {1, 1, 2, 1}, {10, 100}),
          I32({0, 1, 2, 3}),
          I32({0, 1, 0, 1}),
          I32(ranks_bev),
          I32(starts),
          I32(lengths)};
}

std::vector<double> Cells(const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> out;
  const Status status = testing::Run(View(2, 2), inputs, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? out[0].ToDoubles() : std::vector<double>{};
}

TEST(BevPool, SumsRunsOfRanks) {
  EXPECT_EQ(Cells(Small({3, 3, 0, 0}, {0, 2}, {2, 2})), (std::vector<double>{430, 0, 0, 210}));
  EXPECT_EQ(Cells(Small({3, 3, 3, 3}, {0, 2}, {2, 2})), (std::vector<double>{0, 0, 0, 430}));  // the last wins
  EXPECT_EQ(Cells(Small({1, 2, 3, 0}, {0, 4, 1}, {4, 0, 0})), (std::vector<double>{0, 640, 0, 0}));
}

TEST(BevPool, NothingToSum) {
  std::mt19937 rng(2);
  Scene s;
  s.ranks = s.intervals = 0;
  ExpectMatchesReference(View(3, 3), Inputs(s, DType::kF32, DType::kI32, 9, rng));
  s.channels = 0;
  ExpectMatchesReference(View(3, 3), Inputs(s, DType::kF32, DType::kI32, 9, rng));
}

TEST(BevPool, NanGoesWhereItBelongs) {
  std::vector<HostTensor> inputs = Small({3, 3, 0, 0}, {0, 2}, {2, 2});
  inputs[0].set(0, NAN);
  const std::vector<double> cells = Cells(inputs);
  EXPECT_TRUE(std::isnan(cells[3]));
  EXPECT_EQ(cells[0], 430);
}

TEST(BevPool, SameAtAnyAlignment) {
  std::mt19937 rng(3);
  Scene s;
  s.channels = 80;
  s.ranks = 3000;
  s.intervals = 500;
  ExpectSameAtAnyAlignment(View(32, 32), Inputs(s, DType::kF32, DType::kI32, 32 * 32, rng));
}

TEST(BevPoolErrors, SayWhatIsWrong) {
  const auto error = [](const std::vector<HostTensor>& inputs, const std::vector<std::string>& parts) {
    ExpectError(View(2, 2), inputs, parts);
  };
  error(Small({4, 0, 0, 0}, {0}, {2}), {"'ranks_bev'[0] is 4, wanted a cell in [0, 4)"});
  error(Small({0, 0, 0, 0}, {3}, {2}), {"interval 0 begins at 3 and has 2 ranks, wanted it within the 4 ranks"});
  error(Small({0, 0, 0, 0}, {-1}, {2}), {"interval 0 begins at -1"});
  error(Small({0, 0, 0, 0}, {0}, {-1}), {"has -1 ranks"});
  std::vector<HostTensor> inputs = Small({0, 0, 0, 0}, {0}, {4});
  inputs[2].set(2, 4);
  error(inputs, {"'ranks_depth'[2] is 4, wanted a value in [0, 4)"});
  inputs = Small({0, 0, 0, 0}, {0}, {4});
  inputs[3].set(1, -1);
  error(inputs, {"'ranks_feat'[1] is -1, wanted a value in [0, 2)"});
  error({HostTensor::Full(DType::kF32, {1, 2, 1, 3}, 1), inputs[1], inputs[2], inputs[3], inputs[4], inputs[5],
         inputs[6]},
        {"'feat'", "wanted W = 3"});
  const Op& record = *FindOp("bev_pool");
  ExpectAttributeError(record, {{"output_z", AttrValue::Int(2)}}, {"'output_z' is 2"});
  ExpectAttributeError(record, {{"out_width", AttrValue::Int(0)}}, {"'out_width' is 0"});
}

}  // namespace
}  // namespace polyop::testing
