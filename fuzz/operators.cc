// SPDX-License-Identifier: Apache-2.0
// A libFuzzer target: the input bytes determine attributes, shapes and values of calls of the operator that
// POLYOP_FUZZ_OPERATOR names. Each run fuzzes one operator, so that its corpus does not depend on the other operators.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "testing/call_of_bytes.h"

namespace {

const polyop::Op& ChosenOperator() {
  const char* const name = std::getenv("POLYOP_FUZZ_OPERATOR");
  const polyop::Op* const op = name != nullptr ? polyop::FindOp(name) : nullptr;
  if (op == nullptr) {
    std::fprintf(stderr, "POLYOP_FUZZ_OPERATOR: expected the name of an operator of this program, got '%s'\n",
                 name != nullptr ? name : "");
    std::exit(2);
  }
  return *op;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const polyop::Op& op = ChosenOperator();
  const polyop::testing::RandomCall call = polyop::testing::CallOfBytes(op, {data, size});
  polyop::testing::Outcome outcome;
  const std::string wrong = polyop::testing::RunRandomCall(call, &outcome);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n%s\n", wrong.c_str(), call.Text().c_str());
    std::abort();
  }
  return 0;
}
