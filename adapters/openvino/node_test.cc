// SPDX-License-Identifier: Apache-2.0
// Runs random calls of every operator as OpenVINO nodes: results of the CPU plugin equal those of direct calls, invalid
// calls are errors, and several threads share a node and a model.
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
// OpenVINO, TBB and the C++ runtime are not instrumented, so ThreadSanitizer reports false positives in them: TBB's
// memory, memory that one of their threads frees after another, and the text of an error that a promise transfers
// between threads. polyop's code is checked on all threads.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:libtbb\nrace_top:operator delete\nrace_top:free\nrace:std::basic_ostream\n";
}
#endif

namespace polyop::openvino {
namespace {

using testing::HostTensor;
using testing::RandomCall;

// ThreadSanitizer understands how streams and callers synchronise, which use mutexes, but not TBB. Each of them
// therefore has only one TBB thread, its own.
#ifdef __SANITIZE_THREAD__
constexpr int kThreadsOfTbb = 1;
#else
constexpr int kThreadsOfTbb = 2;
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
// Without this, TBB loads a part of itself in a way that sanitizers reject.
const int kTbbSanitizers = setenv("TBB_ENABLE_SANITIZERS", "1", 1);
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

// Returns true if all values survive the plugin's conversion of i64 to i32.
bool Fits(const HostTensor& t) {
  if (!t.present() || t.dtype() != DType::kI64) return true;
  const auto* const values = t.data<int64_t>();
  return std::all_of(values, values + t.size(), [](int64_t v) {
    return v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max();
  });
}

// Returns true if the plugin passes the tensor unchanged, or as i64 or bool with unchanged values.
bool IsKept(const HostTensor& t) {
  const DType dtype = t.present() ? t.dtype() : DType::kF32;
  return (dtype == DType::kI64 && Fits(t)) || dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kI8 ||
         dtype == DType::kU8 || dtype == DType::kBool;
}

ov::Shape AsShape(const Shape& shape) { return ov::Shape(shape.begin(), shape.end()); }

struct Model {
  std::shared_ptr<Node> node;
  std::shared_ptr<ov::Model> model;
  std::vector<size_t> outputs;  // the node's outputs that are outputs of the model
};

// `known`: extents are known; otherwise only ranks. Throws the node's exceptions.
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
  Model result;
  const std::shared_ptr<const void> params(std::shared_ptr<const void>(), call.params.get());  // the call outlives it
  result.node = std::make_shared<Node>(**record, std::move(form), params, arguments);
  ov::ResultVector results;
  const Signature& signature = *call.op->signatures[0].signature;
  for (size_t o = 0; o < result.node->get_output_size(); ++o) {
    if (signature.output(static_cast<int>(o)).optional && !call.optional_outputs) continue;
    result.outputs.push_back(o);
    results.push_back(std::make_shared<ov::op::v0::Result>(result.node->output(o)));
  }
  result.model = std::make_shared<ov::Model>(results, parameters);
  return result;
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

// A call whose inputs the plugin passes unchanged, and its results.
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

#ifndef __SANITIZE_THREAD__  // this test runs on one thread
TEST_P(RandomNodes, EqualDirectCalls) {
  constexpr uint32_t kCalls = 20;
  const Op& op = *GetParam();
  int accepted = 0, rejected = 0;
  for (uint32_t seed = 0; seed < kCalls; ++seed) {
    std::mt19937 rng(seed);
    const testing::Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    testing::CallKind kind;
    kind.broken = seed % 4 == 0;
    if (seed % 4 == 1) kind.values = testing::CallKind::Values::kNonFinite;
    const RandomCall call =
        kind.broken ? testing::MakeRandomCall(op, draw, kind) : testing::MakeValidCall(op, draw, kind, 100);
    const bool known = draw(2) == 0, kept = AreKept(call);
    // Tests only the shapes of some of the calls whose inputs the plugin converts.
    if (!kept && (seed % 8 != 2 || !std::all_of(call.inputs.begin(), call.inputs.end(), Fits))) continue;
    std::vector<HostTensor> want;
    const Status direct = testing::RunOnce(call, &want);
    if (direct.message().find("larger than the test allows") != std::string::npos) continue;
    // OpenVINO may accept a call with wrong types, because it converts i64 to i32 and bool to u8.
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
    ++(direct.ok() ? accepted : rejected);
    if (HasFailure()) return;
  }
  std::printf("Ran %d models; %d were rejected like the direct call\n", accepted, rejected);
  EXPECT_GT(accepted + rejected, 0) << "no model reached OpenVINO";
}
#endif

TEST_P(RandomNodes, CanBeSharedByThreads) {
  const std::optional<Kept> kept = MakeKeptCall(*GetParam());
  ASSERT_TRUE(kept) << "every call has types that OpenVINO converts";
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

TEST_P(RandomNodes, RunOnSeveralStreamsWhileOthersAreCompiled) {
  const std::optional<Kept> kept = MakeKeptCall(*GetParam());
  ASSERT_TRUE(kept) << "every call has types that OpenVINO converts";
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
