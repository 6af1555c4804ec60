// SPDX-License-Identifier: Apache-2.0
// Replays the fuzzing corpus corpus/OPERATOR.txt, like the robustness test replays its random calls. Each line is the
// input of one call in hexadecimal digits; each call reaches code that the others do not.
#include <gtest/gtest.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "testing/call_of_bytes.h"

namespace polyop::testing {
namespace {

std::filesystem::path FileOf(const Op& op) { return std::filesystem::path(POLYOP_CORPUS) / Concat(op.name, ".txt"); }

// Returns every operator of this program that has a corpus.
std::vector<const Op*> OperatorsWithCalls() {
  std::vector<const Op*> found;
  for (const Op* op : AllOps()) {
    if (std::filesystem::exists(FileOf(*op))) found.push_back(op);
  }
  return found;
}

// Returns no bytes unless `digits` are pairs of hexadecimal digits.
std::vector<uint8_t> BytesOf(std::string_view digits) {
  std::vector<uint8_t> bytes(digits.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* const pair = digits.data() + 2 * i;
    if (std::from_chars(pair, pair + 2, bytes[i], 16).ptr != pair + 2) return {};
  }
  return digits.size() % 2 == 0 ? bytes : std::vector<uint8_t>{};
}

class KeptCalls : public ::testing::TestWithParam<const Op*> {};

TEST_P(KeptCalls, MatchTheReference) {
  const Op& op = *GetParam();
  std::ifstream lines(FileOf(op));
  int calls = 0;
  for (std::string line; std::getline(lines, line); ++calls) {
    const std::vector<uint8_t> bytes = BytesOf(line);
    ASSERT_FALSE(bytes.empty()) << FileOf(op) << ": '" << line << "'";
    const RandomCall call = CallOfBytes(op, bytes);
    Outcome outcome;
    EXPECT_EQ(RunRandomCall(call, &outcome), "") << line << ": " << call.Text();
  }
  EXPECT_GT(calls, 0) << FileOf(op);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KeptCalls);
INSTANTIATE_TEST_SUITE_P(Operators, KeptCalls, ::testing::ValuesIn(OperatorsWithCalls()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace polyop::testing
