// Random calls of every operator, made from the definitions alone: results are the reference's on every instruction set
// and in the CUDA kernel's source, nothing crashes, hangs or depends on the number of threads, and under the sanitizers
// nothing reads or writes out of bounds. What kinds of calls there are does not hang on luck, nor their number on the
// machine: kCalls for each operator. POLYOP_FUZZ_SECONDS plays on with other calls for that long.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <random>

#include "core/cuda_context.h"
#include "core/elements.h"
#include "core/shape_eval.h"
#include "testing/random_call.h"

namespace polyop::testing {
namespace {

constexpr uint32_t kCalls = 256;
constexpr unsigned kSecondsForOneCall = 120;

// Ends the program when a call takes forever, and says which.
class Watchdog {
 public:
  explicit Watchdog(const std::string& text) {
    std::snprintf(Text(), kMostText, "a call takes more than %u s: %s\n", kSecondsForOneCall, text.c_str());
    std::signal(SIGALRM, [](int) {
      (void)!write(STDERR_FILENO, Text(), strnlen(Text(), kMostText));
      std::abort();
    });
    alarm(kSecondsForOneCall);
  }
  ~Watchdog() { alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static constexpr size_t kMostText = 4096;
  static char* Text() {
    static char text[kMostText];
    return text;
  }
};

// Of sixteen calls in a row four have non-finite values, three extreme ones, two huge extents, one many tensors and one
// something that the signature does not allow; every other one is misaligned.
CallKind KindOf(uint32_t number) {
  CallKind kind;
  const uint32_t turn = number / 2 % 16;
  if (turn < 4) kind.values = CallKind::Values::kNonFinite;
  if (turn >= 4 && turn < 7) kind.values = CallKind::Values::kExtreme;
  kind.huge_extents = turn == 7 || turn == 8;
  kind.many_tensors = turn == 9;
  kind.broken = turn == 10;
  kind.misaligned = number % 2 == 1;
  return kind;
}

// Which special values stood in which real input of the calls that were taken.
class Specials {
 public:
  void Note(const RandomCall& call) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const HostTensor& t = call.inputs[i];
      if (!t.present() || !IsReal(t.dtype())) continue;
      for (int64_t e = 0; e < t.size(); ++e) {
        const double v = t.at(e);
        if (std::isnan(v)) ++seen_[i].nan;
        if (std::isinf(v)) ++seen_[i].infinite;
        if (std::isfinite(v) && std::fabs(v) > 1e4) ++seen_[i].large;
        if (v != 0 && std::fabs(v) < 1e-6) ++seen_[i].small;
      }
    }
  }
  // The real inputs of the operator's signatures that lack some.
  std::string Missing(const Op& op) const {
    std::string text;
    for (const Kernel& kernel : op.kernels) {
      const OpSignature& signature = op.signatures[kernel.signature];
      for (int i = 0; kernel.device == Device::kCpu && i < signature.signature->num_inputs(); ++i) {
        const TensorSpec& spec = signature.signature->input(i);
        if (spec.any_dtype || !IsReal(kernel.inputs[i])) continue;
        const auto at = seen_.find(static_cast<size_t>(i));
        const Seen seen = at == seen_.end() ? Seen{} : at->second;
        if (seen.nan == 0) text += Concat(" '", spec.name, "' was never NaN");
        if (seen.infinite == 0) text += Concat(" '", spec.name, "' was never infinite");
        if (seen.large == 0) text += Concat(" '", spec.name, "' was never huge");
        if (seen.small == 0) text += Concat(" '", spec.name, "' was never tiny");
      }
    }
    return text;
  }

 private:
  struct Seen {
    int64_t nan = 0, infinite = 0, large = 0, small = 0;
  };
  std::map<size_t, Seen> seen_;
};

class Robustness : public ::testing::TestWithParam<const Op*> {};

TEST_P(Robustness, RandomCalls) {
  using Clock = std::chrono::steady_clock;
  const Op& op = *GetParam();
  const auto end = Clock::now() + std::chrono::duration<double>(SecondsEach(0));
  int calls = 0, taken = 0, compared = 0, excused = 0, tame = 0, tame_excused = 0;
  Specials given;
  std::string last_refusal;
  for (uint32_t seed = 0; seed < kCalls || Clock::now() < end; ++seed, ++calls) {
    std::mt19937 rng(seed);
    const Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    const CallKind kind = KindOf(seed);
    // Mostly the first call that the operator takes; else whatever comes, which is mostly refused.
    const RandomCall call = MakeValidCall(op, draw, kind, kind.broken || seed % 8 == 0 ? 1 : 100);
    const Watchdog watchdog(call.Text());
    Outcome outcome;
    const std::string wrong = RunRandomCall(call, &outcome);
    ASSERT_EQ(wrong, "") << "seed " << seed << ": " << call.Text();
    taken += outcome.refusal.empty();
    compared += outcome.compared;
    excused += outcome.excused;
    if (kind.values == CallKind::Values::kTame) {
      tame += outcome.compared;
      tame_excused += outcome.excused;
    }
    given.Note(call);
    if (!outcome.refusal.empty()) last_refusal = outcome.refusal;
  }
  std::printf("%d calls, %d taken, %d compared with the reference, %d of them but for what is excused\n", calls, taken,
              compared, excused);
  EXPECT_GE(taken * 10, calls * 6) << "too few calls are valid; the last error: " << last_refusal;
  EXPECT_LE(tame_excused * 20, tame * 3) << "too many results of usual calls are not the reference's";
  EXPECT_EQ(given.Missing(op), "");
}

// More tensors than a signature has room for are an error on every device; for a variadic input too, whose tensors are
// views of a fixed number in the kernel.
TEST_P(Robustness, TooManyTensors) {
  const Op& op = *GetParam();
  const Signature& signature = *op.signatures[0].signature;
  std::mt19937 rng(1);
  const Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
  const RandomCall call = MakeValidCall(op, draw, CallKind{}, 200);
  ASSERT_FALSE(call.inputs.empty());
  std::vector<Device> devices = {Device::kCpu};
  if (HasGpuKernels(op)) devices.push_back(GpuDevice());
  if (std::any_of(op.kernels.begin(), op.kernels.end(), [](const Kernel& k) { return k.device == Device::kReference; }))
    devices.push_back(Device::kReference);
  for (int count = 17; count <= 40; ++count) {
    std::vector<HostTensor> inputs = call.inputs;
    const size_t most = static_cast<size_t>(signature.num_inputs() - (signature.variadic() ? 1 : 0) + count);
    while (inputs.size() < most) inputs.push_back(inputs.back());
    for (const Device device : devices) {
      std::vector<HostTensor> outputs;
      RunOptions options;
      options.device = device;
      const Status status = RunOp(op, call.params.get(), inputs, &outputs, options);
      EXPECT_FALSE(status.ok()) << count << " tensors on device " << static_cast<int>(device);
      const std::string number = std::to_string(signature.variadic() ? count : static_cast<int>(inputs.size()));
      EXPECT_NE(status.message().find(number), std::string::npos) << status.message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Robustness, ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace polyop::testing
