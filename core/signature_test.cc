// SPDX-License-Identifier: Apache-2.0
#include "core/signature.h"

#include <gtest/gtest.h>

namespace polyop {
namespace {

constexpr Signature kRoi = "input: T[N, C, H, W], rois: T[R, 5] -> output: T[R, C, output_height, output_width]";

TEST(Signature, NamesAreExtentsOrAttributes) {
  ASSERT_EQ(kRoi.num_inputs(), 2);
  ASSERT_EQ(kRoi.num_outputs(), 1);
  EXPECT_EQ(kRoi.input(1).name, "rois");
  EXPECT_EQ(kRoi.input(1).rank, 2);
  int attributes = 0, extents = 0;
  for (int n = 0; n < kRoi.num_names(); ++n) {
    attributes += kRoi.name(n).kind == NameSpec::Kind::kAttribute;
    extents += kRoi.name(n).kind == NameSpec::Kind::kDim;
  }
  EXPECT_EQ(attributes, 2);  // output_height, output_width
  EXPECT_EQ(extents, 5);     // N C H W R
}

TEST(Signature, TypeVariablesAndFixedTypes) {
  constexpr Signature s = "x: T[N], i: I[N], f: f32[], w: any[*] -> y: T[N], k: i64[N]";
  EXPECT_EQ(s.input(0).type_variable, 0);
  EXPECT_EQ(s.input(1).type_variable, 1);
  EXPECT_EQ(s.input(2).type_variable, -1);
  EXPECT_EQ(s.input(2).rank, 0);
  EXPECT_TRUE(s.input(3).any_dtype);
  EXPECT_EQ(s.output(0).type_variable, 0);
  EXPECT_EQ(s.output(1).dtype, DType::kI64);
}

TEST(Signature, OptionalVariadicPendingAndRest) {
  constexpr Signature s = "a?: f32[m ?= n], n_: f32[n], feats: T[N, *, ...S]... -> d: f32[K<=n*2, 5], k: i64[K]";
  EXPECT_TRUE(s.input(0).optional);
  EXPECT_EQ(s.input(0).dims[0].kind, DimSpec::Kind::kDefault);
  EXPECT_TRUE(s.variadic());
  EXPECT_TRUE(s.input(2).has_rest);
  EXPECT_EQ(s.input(2).dims[1].kind, DimSpec::Kind::kWildcard);
  EXPECT_TRUE(s.output(0).pending());
  EXPECT_TRUE(s.output(1).pending());
  EXPECT_EQ(s.output(1).dims[0].expr, s.output(0).dims[0].expr);  // one bound for both
}

TEST(Signature, KeepsTheTextOfEachDimension) {
  constexpr Signature s = "x: f32[N, 2*groups*(K + 1), OH = (N + 2*pad) / stride[0] + 1] -> y: f32[OH]";
  EXPECT_EQ(s.input(0).dims[1].text, "2*groups*(K + 1)");
  EXPECT_EQ(s.input(0).dims[2].kind, DimSpec::Kind::kDefine);
}

TEST(Signature, SizesOfInputs) {
  constexpr Signature s = "size: i64[size[0]], feats: T[N, *]... -> y: T[size(feats) + N]";
  EXPECT_EQ(s.input(0).dims[0].text, "size[0]");  // a name as any other without parentheses
  const Expr& sum = s.expr(s.output(0).dims[0].expr);
  EXPECT_EQ(s.expr(sum.left).kind, ExprKind::kSize);
  EXPECT_EQ(s.expr(sum.left).value, 1);
}

// tests/development/test_definition_errors.py tests signatures that must not compile.

}  // namespace
}  // namespace polyop
