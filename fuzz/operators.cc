// libFuzzer: its bytes decide the attributes, the shapes and the values of calls of the operator that
// POLYOP_FUZZ_OPERATOR names. An operator by itself, for what is found for it stays so whatever others there are.
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
    std::fprintf(stderr, "POLYOP_FUZZ_OPERATOR must name an operator of this program; it is '%s'\n",
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
