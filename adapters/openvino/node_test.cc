// Random calls of every operator, made from the definitions alone, as nodes of OpenVINO's: what its CPU plugin gives
// equals a direct call, what is wrong ends in an error, and several threads share a node and a model.
#include "adapters/openvino/node.h"

#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/runtime/core.hpp>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "adapters/openvino/element_types.h"
#include "testing/random_call.h"

#ifdef __SANITIZE_THREAD__
// OpenVINO, TBB and the C++ runtime are not instrumented. Of what they do by themselves three things are reported:
// TBB's own memory, what one thread of theirs frees after another, and the text of an error that a promise hands over
// and OpenVINO then writes into another. polyop's code is looked at on whatever thread they call it.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libtbb\nrace_top:operator delete\nrace_top:free\nrace:std::basic_ostream\n";
}
#endif

namespace polyop::openvino {
namespace {

using testing::HostTensor;
using testing::RandomCall;

// ThreadSanitizer sees how threads of streams and callers wait for each other, for they have mutexes; not how TBB's do.
// So each of those has one thread of TBB's, itself.
#ifdef __SANITIZE_THREAD__
constexpr int kThreadsOfTbb = 1;
#else
constexpr int kThreadsOfTbb = 2;
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
// Else TBB loads a part of itself in a way that sanitizers refuse.
const int kTbbIsTold = setenv("TBB_ENABLE_SANITIZERS", "1", 1);
#endif

ov::Core& OpenVino() {
  static ov::Core core;
  return core;
}

ov::CompiledModel Compile(const std::shared_ptr<ov::Model>& model, int streams = 1) {
  return OpenVino().compile_model(model, "CPU", ov::hint::inference_precision(ov::element::f32),
                                  ov::num_streams(ov::streams::Num(streams)),
                                  ov::inference_num_threads(streams * kThreadsOfTbb));
}

// Whether all numbers stay what they are: the plugin makes i64 i32.
bool Fits(const HostTensor& t) {
  if (!t.present() || t.dtype() != DType::kI64) return true;
  const auto* const values = t.data<int64_t>();
  return std::all_of(values, values + t.size(), [](int64_t v) {
    return v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
  });
}

// Types that the plugin hands over as they are, i64 and bool aside, whose values it keeps.
bool IsKept(const HostTensor& t) {
  const DType dtype = t.present() ? t.dtype() : DType::kF32;
  return (dtype == DType::kI64 && Fits(t)) || dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kU8 ||
         dtype == DType::kBool;
}

ov::Shape AsShape(const Shape& shape) { return ov::Shape(shape.begin(), shape.end()); }

struct Model {
  std::shared_ptr<Node> node;
  std::shared_ptr<ov::Model> model;
  std::vector<size_t> outputs;  // of the node, those of the model
};

// `known`: the extents, or the ranks alone. Throws what the node does.
Model MakeModel(const RandomCall& call, bool known) {
  const auto& records = Records();
  const auto record = std::find_if(records.begin(), records.end(), [&](const auto& r) { return &r->op == call.op; });
  NodeForm form{"random", {}};
  ov::ParameterVector parameters;
  ov::OutputVector arguments;
  for (const HostTensor& t : call.inputs) {
    form.present.push_back(t.present() ? 1 : 0);
    if (!t.present()) continue;
    const ov::PartialShape shape =
        known ? ov::PartialShape(AsShape(t.shape())) : ov::PartialShape::dynamic(ov::Rank(t.shape().rank()));
    parameters.push_back(std::make_shared<ov::op::v0::Parameter>(ToOpenVino(t.dtype()), shape));
    arguments.push_back(parameters.back());
  }
  while (!form.present.empty() && form.present.back() == 0) form.present.pop_back();
  Model made;
  const std::shared_ptr<const void> params(std::shared_ptr<const void>(), call.params.get());  // the call outlives it
  made.node = std::make_shared<Node>(**record, std::move(form), params, arguments);
  ov::ResultVector results;
  const Signature& signature = *call.op->signatures[0].signature;
  for (size_t o = 0; o < made.node->get_output_size(); ++o) {
    if (signature.output(static_cast<int>(o)).optional && !call.optional_outputs) continue;
    made.outputs.push_back(o);
    results.push_back(std::make_shared<ov::op::v0::Result>(made.node->output(o)));
  }
  made.model = std::make_shared<ov::Model>(results, parameters);
  return made;
}

ov::TensorVector InputsOf(const RandomCall& call) {
  ov::TensorVector inputs;
  for (const HostTensor& t : call.inputs) {
    if (!t.present()) continue;
    ov::Tensor& tensor = inputs.emplace_back(ToOpenVino(t.dtype()), AsShape(t.shape()));
    if (t.size() > 0) std::memcpy(tensor.data(), t.data<char>(), tensor.get_byte_size());
  }
  return inputs;
}

void Feed(ov::InferRequest& request, const RandomCall& call) {
  const ov::TensorVector inputs = InputsOf(call);
  for (size_t i = 0; i < inputs.size(); ++i) request.set_input_tensor(i, inputs[i]);
}

void ExpectSame(const ov::Tensor& got, const HostTensor& want, bool bits) {
  EXPECT_EQ(got.get_element_type(), ToOpenVino(want.dtype()));
  ASSERT_EQ(got.get_shape(), AsShape(want.shape()));
  if (!bits || want.size() == 0) return;
  EXPECT_EQ(std::memcmp(got.data(), want.data<char>(), got.get_byte_size()), 0) << "an output differs";
}

void ExpectSame(ov::InferRequest& request, const Model& model, const std::vector<HostTensor>& want, bool bits) {
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    ASSERT_LT(model.outputs[i], want.size());
    ExpectSame(request.get_output_tensor(i), want[model.outputs[i]], bits);
  }
}

bool AreKept(const RandomCall& call) { return std::all_of(call.inputs.begin(), call.inputs.end(), IsKept); }

// A call that the plugin hands over as it is, and what it gives.
struct Kept {
  RandomCall call;
  std::vector<HostTensor> want;
};
std::optional<Kept> MakeKeptCall(const Op& op) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 rng(seed);
    const testing::Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    Kept kept{testing::MakeValidCall(op, draw, testing::CallKind{}, 20), {}};
    if (AreKept(kept.call) && testing::RunOnce(kept.call, &kept.want).ok()) return kept;
  }
  return std::nullopt;
}

class RandomNodes : public ::testing::TestWithParam<const Op*> {
 private:
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, kThreadsOfTbb};
};

#ifndef __SANITIZE_THREAD__  // one call after the other
TEST_P(RandomNodes, EqualDirectCalls) {
  constexpr uint32_t kCalls = 20;
  const Op& op = *GetParam();
  int accepted = 0, refused = 0;
  for (uint32_t seed = 0; seed < kCalls; ++seed) {
    std::mt19937 rng(seed);
    const testing::Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    testing::CallKind kind;
    kind.broken = seed % 4 == 0;
    if (seed % 4 == 1) kind.values = testing::CallKind::Values::kNonFinite;
    const RandomCall call =
        kind.broken ? testing::MakeRandomCall(op, draw, kind) : testing::MakeValidCall(op, draw, kind, 100);
    const bool known = draw(2) == 0, kept = AreKept(call);
    // Of those that reach the kernel in other types a few, for their shapes.
    if (!kept && (seed % 8 != 2 || !std::all_of(call.inputs.begin(), call.inputs.end(), Fits))) continue;
    std::vector<HostTensor> want;
    const Status direct = testing::RunOnce(call, &want);
    if (direct.message().find("larger than the test allows") != std::string::npos) continue;
    // Where the types are wrong OpenVINO may take the call: it makes i64 i32 and bool u8, and so each passes for the
    // other.
    if (!direct.ok() && (!kept || direct.message().find("no kernel takes") != std::string::npos)) continue;
    SCOPED_TRACE(Concat("seed ", seed, known ? ", extents known: " : ", ranks known: ", call.Text()));
    std::string failure;
    try {
      const Model model = MakeModel(call, known);
      ov::InferRequest request = Compile(model.model).create_infer_request();
      Feed(request, call);
      request.start_async();  // with one thread, infer() would lose an error
      request.wait();
      if (direct.ok()) ExpectSame(request, model, want, kept);
    } catch (const std::exception& e) {
      failure = e.what();
    }
    EXPECT_EQ(failure.empty(), direct.ok()) << "OpenVINO: " << failure << "\na direct call: " << direct.message();
    ++(direct.ok() ? accepted : refused);
    if (HasFailure()) return;
  }
  std::printf("%d models ran, %d were refused as the call is\n", accepted, refused);
  EXPECT_GT(accepted + refused, 0) << "no model came to OpenVINO";
}
#endif

TEST_P(RandomNodes, AreSharedByThreads) {
  const std::optional<Kept> kept = MakeKeptCall(*GetParam());
  ASSERT_TRUE(kept) << "no call has types that OpenVINO keeps";
  SCOPED_TRACE(kept->call.Text());
  const Model model = MakeModel(kept->call, false);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const ov::TensorVector inputs = InputsOf(kept->call);
      for (int run = 0; run < 4; ++run) {
        ov::TensorVector outputs;
        for (size_t o = 0; o < model.node->get_output_size(); ++o) {
          outputs.emplace_back(model.node->get_output_element_type(o), ov::Shape{0});
        }
        ASSERT_TRUE(model.node->evaluate(outputs, inputs));
        for (const size_t o : model.outputs) ExpectSame(outputs[o], kept->want[o], true);
      }
    });
  }
}

TEST_P(RandomNodes, ServeSeveralStreamsWhileOthersAreCompiled) {
  const std::optional<Kept> kept = MakeKeptCall(*GetParam());
  ASSERT_TRUE(kept) << "no call has types that OpenVINO keeps";
  SCOPED_TRACE(kept->call.Text());
  const auto compile_and_run = [&](bool known) {
    const Model model = MakeModel(kept->call, known);
    ov::CompiledModel compiled = Compile(model.model, 2);
    std::vector<ov::InferRequest> requests(4);
    for (int round = 0; round < 2; ++round) {
      for (ov::InferRequest& request : requests) {
        if (round == 0) request = compiled.create_infer_request();
        Feed(request, kept->call);
        request.start_async();
      }
      for (ov::InferRequest& request : requests) {
        request.wait();
        ExpectSame(request, model, kept->want, true);
      }
    }
  };
  std::jthread other([&] { compile_and_run(false); });
  compile_and_run(true);
}

INSTANTIATE_TEST_SUITE_P(Operators, RandomNodes, ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace polyop::openvino
