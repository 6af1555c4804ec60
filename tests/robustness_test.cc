// Random calls of every operator: nothing crashes, hangs or depends on the number of threads. Under the
// sanitizers nothing reads or writes out of bounds. POLYOP_FUZZ_SECONDS sets the time for each operator; a slow machine
// takes more, for 200 calls.
#include <chrono>
#include <random>

#include "testing/random_call.h"

namespace polyop::testing {
namespace {

class Robustness : public ::testing::TestWithParam<const Op*> {};

TEST_P(Robustness, RandomCalls) {
  using Clock = std::chrono::steady_clock;
  const Op& op = *GetParam();
  const auto end = Clock::now() + std::chrono::duration<double>(SecondsEach(1.0));
  int64_t calls = 0, accepted = 0;
  std::string outcome;
  for (uint32_t seed = 0; Clock::now() < end || calls < 200; ++seed, ++calls) {
    std::mt19937 rng(seed);
    const Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    const RandomCall call = MakeRandomCall(op, draw);
    const std::string wrong = RunRandomCall(call, &outcome);
    accepted += outcome.empty();
    ASSERT_EQ(wrong, "") << "seed " << seed << ": " << call.Text();
  }
  RecordProperty("calls", static_cast<int>(calls));
  // Were hardly any call accepted, the kernels would not be tested at all.
  EXPECT_GT(accepted * 50, calls) << "only " << accepted << " of " << calls
                                  << " calls were valid; the last: " << outcome;
}

INSTANTIATE_TEST_SUITE_P(Operators, Robustness, ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace polyop::testing
