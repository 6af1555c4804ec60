// libFuzzer: its bytes decide the operator, the attributes, the shapes and the values.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "testing/random_call.h"

namespace {

// FNV-1a of a number and a name, mixed once more.
uint32_t HashOf(uint32_t number, std::string_view name) {
  uint32_t hash = 2166136261u ^ number;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  return hash ^ hash >> 13;
}

// The operator of the largest hash: a new one takes over few of the inputs that are kept.
const polyop::Op& OperatorFor(uint32_t number) {
  const auto ops = polyop::AllOps();
  return **std::max_element(ops.begin(), ops.end(), [number](const polyop::Op* a, const polyop::Op* b) {
    return HashOf(number, a->name) < HashOf(number, b->name);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t at = 0;
  const polyop::testing::Draw draw = [&](uint32_t n) {
    uint32_t v = 0;
    for (int i = 0; i < (n > 256 ? 2 : 1) && at < size; ++i) v = v << 8 | data[at++];
    return v % n;  // all zero where the bytes end
  };
  const polyop::testing::RandomCall call = polyop::testing::MakeRandomCall(OperatorFor(draw(65536)), draw);
  polyop::testing::Outcome outcome;
  const std::string wrong = polyop::testing::RunRandomCall(call, &outcome);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n%s\n", wrong.c_str(), call.Text().c_str());
    std::abort();
  }
  return 0;
}
