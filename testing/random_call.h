// Random calls of any operator, made from its definition alone, and what must hold for them. The robustness test draws
// from a generator, the fuzzer from libFuzzer's bytes.
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

/// What a random call is to have in it.
struct CallKind {
  enum class Values : uint8_t {
    kTame,
    kNonFinite,  // +-inf and NaN in a real input
    kExtreme,    // +-1e30 and the like, and denormal numbers
  };
  Values values = Values::kTame;
  bool huge_extents = false;  // of 2^31 and more, in tensors without elements
  bool many_tensors = false;  // 0 to 40 for a variadic input
  bool misaligned = false;    // inputs and outputs begin at multiples of their elements' size only
  bool broken = false;        // a type, rank or extent that the signature does not allow
};

struct RandomCall {
  const Op* op = nullptr;
  Params params;
  std::vector<testing::HostTensor> inputs;
  bool optional_outputs = false;
  CallKind kind;
  bool extreme = false;  // an attribute or an element is far from 1
  bool extreme_attribute = false;
  bool has_non_finite = false;  // an element is NaN or infinite

  /// "op(attributes; inputs)", for messages.
  std::string Text() const;
};

/// A call of this kind, as far as the operator has what it takes.
RandomCall MakeRandomCall(const Op& op, const Draw& draw, const CallKind& kind);
/// A call of a drawn kind.
RandomCall MakeRandomCall(const Op& op, const Draw& draw);
/// The first of up to `tries` calls that the operator takes, or the last.
RandomCall MakeValidCall(const Op& op, const Draw& draw, const CallKind& kind, int tries);

/// How long tests play each operator: POLYOP_FUZZ_SECONDS, or `usual`.
double SecondsEach(double usual);

/// A larger output is refused, as a runtime out of memory would.
inline constexpr int64_t kMaxOutputElements = int64_t{1} << 18;

/// Runs the call once, on the best instruction set and one thread.
Status RunOnce(const RandomCall& call, std::vector<testing::HostTensor>* outputs);

/// What came of a call that is not wrong.
struct Outcome {
  std::string refusal;    // the error's message, or empty
  bool compared = false;  // with the reference
  bool excused = false;   // some element differs from the reference for a reason that AgainstReference allows
};

/// Runs the call on every instruction set, with one thread and with several, and the CUDA kernel's source. Empty if
/// nothing is wrong; else what: an outcome that depends on the threads or is not the reference's (AgainstReference), an
/// output that was promised and not made, an error without a message, or one that is not the reference's. Reads out of
/// bounds are the sanitizers' to see.
std::string RunRandomCall(const RandomCall& call, Outcome* outcome);

}  // namespace polyop::testing
