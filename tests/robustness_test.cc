// SPDX-License-Identifier: Apache-2.0
// Calls every operator with random inputs that are generated from its definition. The results equal the reference's on
// every instruction set and in the CUDA kernel's source, and do not depend on the number of threads. Nothing crashes or
// hangs, and under the sanitizers nothing reads or writes out of bounds. The mix of calls and their number, kCalls per
// operator, are deterministic. POLYOP_CALLS_FACTOR multiplies their number. POLYOP_FUZZ_SECONDS continues with other
// calls for that time.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "core/call.h"
#include "core/cuda_context.h"
#include "core/elements.h"
#include "core/input_role.h"
#include "core/shape_eval.h"
#include "testing/random_call.h"

namespace polyop::testing {
namespace {

const uint32_t kCalls = CallsEach(128);
constexpr int kCallsForAllSpecials = 256;  // fewer may lack one of the special values
constexpr unsigned kSecondsForOneCall = 120;
using Clock = std::chrono::steady_clock;

// Aborts the program when a call takes too long, and names the call.
class Watchdog {
 public:
  explicit Watchdog(const std::string& text) {
    std::snprintf(Text(), kMaxText, "a call takes more than %u s: %s\n", kSecondsForOneCall, text.c_str());
    std::signal(SIGALRM, [](int) {
      (void)!write(STDERR_FILENO, Text(), strnlen(Text(), kMaxText));
      std::abort();
    });
    alarm(kSecondsForOneCall);
  }
  ~Watchdog() { alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static constexpr size_t kMaxText = 4096;
  static char* Text() {
    static char text[kMaxText];
    return text;
  }
};

// Of sixteen consecutive calls, four have non-finite values, three have extreme values, two have huge extents, one has
// many tensors, and one violates the signature. Every other call has misaligned inputs.
CallKind KindOf(uint32_t number) {
  CallKind kind;
  const uint32_t index = number / 2 % 16;
  if (index < 4) kind.values = CallKind::Values::kNonFinite;
  if (index >= 4 && index < 7) kind.values = CallKind::Values::kExtreme;
  kind.huge_extents = index == 7 || index == 8;
  kind.many_tensors = index == 9;
  kind.broken = index == 10;
  kind.misaligned = number % 2 == 1;
  return kind;
}

// Counts the special values in each real input of the calls.
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
  // Names the real inputs of the operator's signatures that never had one of the special values.
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

// Returns the values of the inputs: the first kShown of each, and the one at the index of the element that `wrong`
// names.
std::string ValuesOf(const RandomCall& call, const std::string& wrong) {
  constexpr int64_t kShown = 32;
  const std::string_view name = "element ";
  const size_t at = wrong.find(name);
  const int64_t element = at == std::string::npos ? -1 : std::atoll(wrong.c_str() + at + name.size());
  std::string text;
  const auto add = [&text](const char* before, double value) {
    char number[64];
    std::snprintf(number, sizeof(number), "%s%.9g", before, value);
    text += number;
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const HostTensor& t = call.inputs[i];
    if (!t.present()) continue;
    text += Concat("\n  input ", i, ":");
    for (int64_t e = 0; e < std::min(t.size(), kShown); ++e) add(" ", t.at(e));
    if (t.size() > kShown) text += Concat(" … (", t.size(), " in total)");
    if (element >= 0 && element < t.size()) add(Concat("; element ", element, " is ").c_str(), t.at(element));
  }
  return text;
}

class Robustness : public ::testing::TestWithParam<const Op*> {};

TEST_P(Robustness, RandomCalls) {
  const Op& op = *GetParam();
  const auto end = Clock::now() + std::chrono::duration<double>(SecondsEach(0));
  int calls = 0, accepted = 0, compared = 0, excused = 0, tame = 0, tame_excused = 0;
  Specials given;
  std::string last_error;
  for (uint32_t seed = 0; seed < kCalls || Clock::now() < end; ++seed, ++calls) {
    std::mt19937 rng(seed);
    const Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    const CallKind kind = KindOf(seed);
    // Usually the first valid call. Otherwise the first call, which is usually refused.
    const RandomCall call = MakeValidCall(op, draw, kind, kind.broken || seed % 8 == 0 ? 1 : 100);
    const Watchdog watchdog(call.Text());
    Outcome outcome;
    const std::string wrong = RunRandomCall(call, &outcome);
    ASSERT_EQ(wrong, "") << "seed " << seed << ": " << call.Text() << ValuesOf(call, wrong);
    accepted += outcome.error.empty();
    compared += outcome.compared;
    excused += outcome.excused;
    if (kind.values == CallKind::Values::kFinite) {
      tame += outcome.compared;
      tame_excused += outcome.excused;
    }
    given.Note(call);
    if (!outcome.error.empty()) last_error = outcome.error;
  }
  std::printf("%d calls, %d accepted, %d compared with the reference, %d of them with excused elements\n", calls,
              accepted, compared, excused);
  EXPECT_GE(accepted * 10, calls * 6) << "too few calls are valid; the last error: " << last_error;
  EXPECT_LE(tame_excused * 20, tame * 3) << "too many results of usual calls differ from the reference";
  if (calls >= kCallsForAllSpecials) {
    EXPECT_EQ(given.Missing(op), "");
  }
}

// Returns whether the elements from `at` on, a row or one element, suit the role of an input (core/input_role.h).
bool Suits(std::string_view role, const HostTensor& t, int64_t at) {
  const auto is_between = [&](int64_t i, double low, double high) {
    return t.at(at + i) >= low && t.at(at + i) <= high;
  };
  const auto have_size = [&](int64_t i) {
    return t.at(at + i + 2) >= t.at(at + i) && t.at(at + i + 3) >= t.at(at + i + 1);
  };
  if (role == "probability") return is_between(0, 0, 1);
  if (role == "boxes") return have_size(0);
  if (role == "rotated_boxes") return t.at(at + 2) >= 0 && t.at(at + 3) >= 0;
  const bool has_image = (role == "batch_index" || role.ends_with("rois")) && is_between(0, 0, 1);
  return has_image && t.at(at) == std::floor(t.at(at)) && (role != "rois" || have_size(1));
}

// Returns the number of elements that Suits() reads, or 0 if it does not know the role.
int64_t ElementsOf(std::string_view role, const HostTensor& t) {
  if (role == "probability" || role == "batch_index") return 1;
  return role == "boxes" || role == "rotated_boxes" || role.ends_with("rois") ? t.shape()[t.shape().rank() - 1] : 0;
}

// RoIs, boxes, indices and scores of random calls are valid in many calls, which reach the kernel, but not in all.
TEST_P(Robustness, InputsOftenSuitTheirRole) {
  const Op& op = *GetParam();
  std::map<std::string_view, std::pair<int, int>> calls;  // all and those that suit, by role
  for (uint32_t seed = 0; seed < kCalls; ++seed) {
    std::mt19937 rng(seed);
    const RandomCall call =
        MakeRandomCall(op, [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); }, CallKind{});
    const Signature& signature = *op.signatures[0].signature;
    if (op.signatures.size() > 1 || signature.variadic()) continue;  // inputs and their specifications differ in number
    for (int i = 0; i < signature.num_inputs(); ++i) {
      const HostTensor& t = call.inputs[static_cast<size_t>(i)];
      const std::string_view role = RoleOf(signature.input(i));
      const int64_t step = role.empty() || !t.present() ? 0 : ElementsOf(role, t);
      if (step == 0 || t.size() < 2 * step) continue;
      bool suits = true;
      for (int64_t at = 0; at < t.size(); at += step) suits &= Suits(role, t, at);
      auto& [all, suiting] = calls[role];
      ++all;
      suiting += suits;
    }
  }
  for (const auto& [role, counts] : calls) {
    if (counts.first < 32) continue;
    EXPECT_GE(counts.second * 2, counts.first) << role << ": " << counts.second << " of " << counts.first;
    EXPECT_LE(counts.second * 10, counts.first * 9) << role << ": " << counts.second << " of " << counts.first;
  }
}

// Operators whose items depend on the others, by their definitions or as the text says.
const std::map<std::string_view, std::string_view> kDependentItems = {
    {"random_distribution", "a number depends on its position in the tensor"},
    {"scatter_nd", "an index selects elements of all data"},
    {"scatter_reduce", "a vector of indices selects slices of all data"},
    {"softmax", "normalizes along the first dimension"},
    {"voxel_grid", "the grid begins at the smallest position"},
};

// Returns whether an attribute of the call selects the first dimension, along which elements are not independent. A
// Fourier transform of all dimensions but the last, which has the parts of a complex number, sums over the first one.
bool IsAlongFirstDimension(const RandomCall& call) {
  for (const AttrInfo& info : call.op->attributes) {
    const std::string_view name = info.spec.name;
    const bool is_transform = call.op->name == "dft" && name == "dimensions";
    if (name != "axis" && name != "dim" && !is_transform) continue;
    const int64_t value = info.get(info.spec, call.params.get()).ints.at(0);
    const int64_t rank = call.inputs[0].shape().rank();
    if (is_transform ? value == rank - 1 : value == 0 || value == -rank) return true;
  }
  return false;
}

// The results of an item are the same bytes alone and with others.
TEST_P(Robustness, ItemsDoNotDependOnOthers) {
  const Op& op = *GetParam();
  if (kDependentItems.contains(op.name)) return;
  const auto end = Clock::now() + std::chrono::duration<double>(SecondsEach(0));
  int compared = 0;
  for (uint32_t seed = 0; seed < kCalls / 4 || Clock::now() < end; ++seed) {
    std::mt19937 rng(seed);
    const Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    CallKind kind = KindOf(seed);
    kind.huge_extents = kind.broken = kind.many_tensors = false;
    const RandomCall call = MakeValidCall(op, draw, kind, 20);
    if (IsAlongFirstDimension(call)) continue;
    const Watchdog watchdog(call.Text());
    const std::string wrong = DifferenceOfItems(call, &compared);
    ASSERT_EQ(wrong, "") << "seed " << seed << ": " << call.Text() << ValuesOf(call, wrong);
  }
  std::printf("%d items compared\n", compared);
  const bool has_items =
      std::ranges::any_of(op.signatures, [](const OpSignature& s) { return !BatchNames(*s.signature).empty(); });
  EXPECT_EQ(compared > 0, has_items);
}

// Indices that float cannot count address the right elements.
TEST_P(Robustness, IndicesAboveTheIntegersOfFloat) {
  const Op& op = *GetParam();
  if (!HasLongExtent(op)) {
    std::printf("no extent that only the values of other inputs address\n");
    return;
  }
  CallKind kind;
  kind.long_extent = true;
  int accepted = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(SecondsEach(0));
  for (uint32_t seed = 0; seed < 1 || Clock::now() < end; ++seed) {
    std::mt19937 rng(seed);
    const Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    const RandomCall call = MakeValidCall(op, draw, kind, 4);
    const Watchdog watchdog(call.Text());
    Outcome outcome;
    ASSERT_EQ(RunRandomCall(call, &outcome), "") << "seed " << seed << ": " << call.Text();
    accepted += outcome.error.empty();
  }
  std::printf("%d calls accepted\n", accepted);
}

// Every device rejects more tensors than a signature allows. This includes variadic inputs, whose kernels have a fixed
// number of views.
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
    const size_t total = static_cast<size_t>(signature.num_inputs() - (signature.variadic() ? 1 : 0) + count);
    while (inputs.size() < total) inputs.push_back(inputs.back());
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

// Provides no memory: Prepare allocates nothing.
class NoOutputs : public OutputSource {
 public:
  bool Requested(int) override { return true; }
  Status Allocate(int, DType, const Shape&, void**) override { return Internal("nothing is allocated"); }
};

// Returns true if the message contains the name of an attribute or an input.
bool NamesACause(const Op& op, const std::string& message) {
  const auto names = [&](std::string_view name) { return message.find(Concat("'", name, "'")) != std::string::npos; };
  for (const AttrInfo& info : op.attributes) {
    if (names(info.spec.name)) return true;
  }
  for (const OpSignature& s : op.signatures) {
    for (int i = 0; i < s.signature->num_inputs(); ++i) {
      if (names(s.signature->input(i).name)) return true;
    }
  }
  return false;
}

// Sizes overflow by an attribute, or by an input whose values determine a shape. The error says which.
TEST_P(Robustness, ErrorsOfHugeSizesNameTheirCause) {
  const Op& op = *GetParam();
  std::mt19937 rng(1);
  const Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
  RandomCall call = MakeValidCall(op, draw, CallKind{}, 200);
  const auto check = [&] {
    std::vector<AnyTensor> inputs;
    for (const HostTensor& t : call.inputs) inputs.push_back(t.view());
    NoOutputs none;
    PreparedCall prepared;
    const Status status = Prepare(op, Device::kCpu, call.params.get(), inputs, none, &prepared);
    EXPECT_TRUE(status.ok() || NamesACause(op, status.message())) << call.Text() << ": " << status.message();
  };
  for (const AttrInfo& info : op.attributes) {
    const AttrValue usual = info.get(info.spec, call.params.get());
    for (const double huge : {0x1p31 - 1, 0x1p40, 0x1p62}) {
      AttrValue value = usual;
      std::fill(value.ints.begin(), value.ints.end(), static_cast<int64_t>(huge));
      std::fill(value.floats.begin(), value.floats.end(), huge);
      if (info.spec.num_choices() > 0 || !info.set(info.spec, call.params.get(), value).ok()) continue;
      check();
    }
    ASSERT_TRUE(info.set(info.spec, call.params.get(), usual).ok()) << info.spec.name;
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    HostTensor& t = call.inputs[i];
    if (!t.present() || i >= static_cast<size_t>(op.signatures[0].signature->num_inputs())) continue;
    if (!op.signatures[0].needs_value(static_cast<int>(i))) continue;
    for (const double huge : {-0x1p30, 0x1p30, 0x1p40, 0x1p62}) {
      if (t.dtype() == DType::kI32 && std::fabs(huge) > 0x1p30) continue;
      for (int64_t e = 0; e < t.size(); ++e) t.set(e, huge);
      check();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, Robustness, ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace polyop::testing
