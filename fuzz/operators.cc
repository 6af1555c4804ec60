// libFuzzer: its bytes decide the operator, the attributes, the shapes and the values.
#include <cstdio>
#include <cstdlib>

#include "testing/random_call.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t at = 0;
  const polyop::testing::Draw draw = [&](uint32_t n) {
    uint32_t v = 0;
    for (int i = 0; i < (n > 256 ? 2 : 1) && at < size; ++i) v = v << 8 | data[at++];
    return v % n;  // all zero where the bytes end
  };
  const auto ops = polyop::AllOps();
  const polyop::testing::RandomCall call =
      polyop::testing::MakeRandomCall(*ops[draw(static_cast<uint32_t>(ops.size()))], draw);
  polyop::testing::Outcome outcome;
  const std::string wrong = polyop::testing::RunRandomCall(call, &outcome);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n%s\n", wrong.c_str(), call.Text().c_str());
    std::abort();
  }
  return 0;
}
