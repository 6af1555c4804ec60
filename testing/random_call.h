// Random calls of any operator, made from its definition alone: shapes that mostly fit the signature,
// attributes in and out of range, hostile values. The robustness test draws from a generator, the fuzzer
// from libFuzzer's bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/op.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Draws a number in [0, n), n > 0.
using Draw = std::function<uint32_t(uint32_t n)>;

struct RandomCall {
  const Op* op = nullptr;
  Params params;
  std::vector<testing::HostTensor> inputs;
  bool optional_outputs = false;

  /// "op(attributes; inputs)", for messages.
  std::string Text() const;
};

RandomCall MakeRandomCall(const Op& op, const Draw& draw);

/// How long tests play each operator: POLYOP_FUZZ_SECONDS, or `usual`.
double SecondsEach(double usual);

/// Runs the call once, on the best instruction set and one thread. A larger output than tests allow is an error.
Status RunOnce(const RandomCall& call, std::vector<testing::HostTensor>* outputs);

/// Runs the call on every instruction set, with one thread and with several. Empty if nothing is wrong;
/// else what: an outcome that depends on the threads, an output that was promised and not made, an error
/// without a message. Reads out of bounds are the sanitizers' to see.
std::string RunRandomCall(const RandomCall& call, std::string* outcome);

}  // namespace polyop::testing
