// SPDX-License-Identifier: Apache-2.0
// Tests the symbols of shape inference. ONNX Runtime takes extents with the same symbol as equal, so different extents
// need different symbols.
#include "adapters/onnxruntime/symbolic_domain.h"

#include <gtest/gtest.h>

#include <set>

namespace polyop::onnxruntime {
namespace {

SymbolicDim Named(const char* text) { return {false, -1, text}; }

TEST(SymbolicDomain, InventedSymbolsAreReservedAndUnique) {
  std::set<std::string> symbols;
  for (int node = 0; node < 3; ++node) {
    SymbolicDomain domain;
    const std::string k = domain.Pending("K", Named("N")).text;
    EXPECT_EQ(domain.Pending("K", Named("N")).text, k) << "outputs of one node share it";
    EXPECT_EQ(k.rfind("polyop_K_", 0), 0u) << k;
    EXPECT_TRUE(symbols.insert(k).second) << k;
    EXPECT_TRUE(symbols.insert(domain.Pending("V", Named("N")).text).second);
    EXPECT_TRUE(symbols.insert(SymbolicDomain::FreshSymbol("unknown")).second);
  }
  // Names that a model may have, such as those that another process wrote.
  for (const char* name : {"K_1", "V_2", "unknown_3", "polyop_K_1", "polyop_K_0000000000000000_1"}) {
    EXPECT_EQ(symbols.count(name), 0u) << name;
  }
}

TEST(SymbolicDomain, ScalesHaveAllDigits) {
  SymbolicDomain domain;
  std::set<std::string> texts;
  const float third = 1.0f / 3;
  for (float scale = third; texts.size() < 5; scale = std::nextafter(scale, 2.0f)) {
    EXPECT_TRUE(texts.insert(domain.FloorScale(Named("H"), static_cast<double>(scale)).text).second) << scale;
  }
  EXPECT_EQ(domain.FloorScale(Named("H"), 1.5).text, "floor(H*1.5)");
  EXPECT_EQ(domain.FloorScale(Named("H"), 1).text, "H");
}

// Names in models contain operators, too: the exporters of PyTorch write "2*s0" and "s0 - 1".
TEST(SymbolicDomain, DifferentExpressionsHaveDifferentTexts) {
  SymbolicDomain domain;
  const auto text = [&](ExprKind kind, const char* a, const char* b) {
    return domain.Apply(kind, Named(a), Named(b)).text;
  };
  EXPECT_NE(text(ExprKind::kSub, "a", "b - c"), text(ExprKind::kSub, "a - b", "c"));
  EXPECT_NE(text(ExprKind::kMul, "a + b", "c"), text(ExprKind::kMul, "a", "b + c"));
  EXPECT_NE(text(ExprKind::kMul, "a + b", "c"), "a + b*c");
  EXPECT_NE(text(ExprKind::kMin, "a, b", "c"), text(ExprKind::kMin, "a", "b, c"));
  EXPECT_NE(text(ExprKind::kFloorDiv, "a", "b*c"), text(ExprKind::kFloorDiv, "a/b", "c"));
  EXPECT_NE(domain.FloorScale(Named("a + b"), 0.5).text, "floor(a + b*0.5)");
  EXPECT_EQ(text(ExprKind::kMul, "B*C", "min(N, 50)"), "B*C*min(N, 50)");
  EXPECT_EQ(text(ExprKind::kAdd, "H", "W"), "(H + W)");
  EXPECT_EQ(text(ExprKind::kMul, "(H + W)", "2*s0"), "(H + W)*2*s0");
  EXPECT_EQ(text(ExprKind::kAdd, "", "W"), "");
  EXPECT_EQ(domain.Apply(ExprKind::kAdd, Named("?"), Named("W")).text, "((?) + W)");
}

}  // namespace
}  // namespace polyop::onnxruntime
