#include "ops/quantized_corner_pool/quantized_corner_pool.h"

#include "families/quantized/quantized_test.h"

namespace polyop::testing {
namespace {

using Mode = QuantizedCornerPool::Mode;

TEST(QuantizedCornerPool, MatchesReference) {
  std::mt19937 rng(1);
  for (DType dtype : {DType::kI8, DType::kU8}) {
    for (Mode mode : {Mode::kTop, Mode::kBottom, Mode::kLeft, Mode::kRight}) {
      for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{2, 3, 7, 5}, Shape{1, 2, 33, 31}, Shape{1, 1, 9, 1100},
                                 Shape{0, 3, 4, 4}, Shape{1, 2, 0, 4}, Shape{1, 2, 4, 0}}) {
        for (const float scale : {1.0f, 0.3f}) {
          SCOPED_TRACE(Concat(ToString(shape), ", mode ", static_cast<int>(mode), " ", NameOf(dtype)));
          QuantizedCornerPool op;
          op.mode = mode;
          op.output_scale = scale;
          op.input_zero_point = 3;
          op.output_zero_point = dtype == DType::kI8 ? -20 : 90;
          ExpectWithinOneStep(op, {RandomCodes(dtype, shape, rng)});
        }
      }
    }
  }
}

TEST(QuantizedCornerPool, CarriesMaximaToTheEdge) {
  QuantizedCornerPool op;
  op.output_zero_point = 1;
  const HostTensor input = HostTensor::Of(DType::kI8, {1, 1, 3, 3}, {1, 5, 2, 4, -3, 0, 2, 4, 127});
  std::vector<HostTensor> outputs;
  ASSERT_TRUE(testing::Run(op, {input}, &outputs).ok());
  EXPECT_EQ(outputs[0].ToDoubles(), (std::vector<double>{5, 6, 127, 5, 5, 127, 3, 5, 127}));
  op.mode = Mode::kRight;
  ASSERT_TRUE(testing::Run(op, {input}, &outputs).ok());
  EXPECT_EQ(outputs[0].ToDoubles(), (std::vector<double>{2, 6, 6, 5, 5, 5, 3, 5, 127}));
}

TEST(QuantizedCornerPool, RejectsInvalidInputs) {
  QuantizedCornerPool op;
  op.output_zero_point = 128;
  ExpectError(op, {HostTensor::Full(DType::kI8, {1, 1, 2, 2}, 0)}, {"'output_zero_point'", "got 128"});
}

}  // namespace
}  // namespace polyop::testing
