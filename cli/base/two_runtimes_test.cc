// SPDX-License-Identifier: Apache-2.0
// Tests two versions of ONNX Runtime with polyop's operators in one process, and sessions that end with the process.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "onnx/onnx.pb.h"
#include "onnxruntime_c_api.h"

extern "C" OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base);

#ifdef __SANITIZE_ADDRESS__
// ONNX Runtime itself leaks when a process ends: 1.20 some 2 kB, once.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libonnxruntime.so";
}
#endif

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

// Returns a model of 2 * a + b for vectors of any length.
std::string AddModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::OperatorSetIdProto* opset = model.add_opset_import();
  opset->set_domain("custom");
  opset->set_version(1);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("add");
  onnx::NodeProto* node = graph->add_node();
  node->set_domain("custom");
  node->set_op_type("my_add");
  for (const char* name : {"a", "b"}) {
    node->add_input(name);
    onnx::ValueInfoProto* input = graph->add_input();
    input->set_name(name);
    auto* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_param(name);
  }
  node->add_output("c");
  graph->add_output()->set_name("c");
  return model.SerializeAsString();
}

// ThreadSanitizer does not recognize the synchronization of ONNX Runtime's threads.
#ifdef __SANITIZE_THREAD__
constexpr int kThreads = 1;
#else
constexpr int kThreads = 2;
#endif

// A library of ONNX Runtime with a session of the model. It uses the C API, because the C++ API supports one runtime
// per process.
class Runtime {
 public:
  explicit Runtime(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto get = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
    base_ = get();
    api_ = base_->GetApi(17);
    Check(api_->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env_));
    OrtSessionOptions* options = nullptr;
    Check(api_->CreateSessionOptions(&options));
    Check(api_->SetIntraOpNumThreads(options, kThreads));
    Check(RegisterCustomOps(options, base_));
    const std::string model = AddModel();
    Check(api_->CreateSessionFromArray(env_, model.data(), model.size(), options, &session_));
    api_->ReleaseSessionOptions(options);
  }
  ~Runtime() {
    api_->ReleaseSession(session_);
    api_->ReleaseEnv(env_);
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::string version() const { return base_->GetVersionString(); }

  // Fills `c` and returns "", or returns the runtime's message.
  std::string Run(std::vector<float> a, std::vector<float> b, std::vector<float>* c) const {
    OrtMemoryInfo* memory = nullptr;
    Check(api_->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    OrtValue* inputs[2] = {};
    std::vector<float>* values[2] = {&a, &b};
    for (int i = 0; i < 2; ++i) {
      const auto size = static_cast<int64_t>(values[i]->size());
      Check(api_->CreateTensorWithDataAsOrtValue(memory, values[i]->data(), values[i]->size() * sizeof(float), &size, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &inputs[i]));
    }
    const char* input_names[] = {"a", "b"};
    const char* output_names[] = {"c"};
    OrtValue* output = nullptr;
    OrtStatus* status = api_->Run(session_, nullptr, input_names, inputs, 2, output_names, 1, &output);
    std::string message;
    if (status != nullptr) {
      message = api_->GetErrorMessage(status);
      api_->ReleaseStatus(status);
    } else {
      float* data = nullptr;
      Check(api_->GetTensorMutableData(output, reinterpret_cast<void**>(&data)));
      c->assign(data, data + a.size());
      api_->ReleaseValue(output);
    }
    for (OrtValue* input : inputs) api_->ReleaseValue(input);
    api_->ReleaseMemoryInfo(memory);
    return message;
  }

 private:
  void Check(OrtStatus* status) const {
    if (status == nullptr) return;
    const std::string message = api_->GetErrorMessage(status);
    api_->ReleaseStatus(status);
    throw std::runtime_error(version() + ": " + message);
  }

  const OrtApiBase* base_ = nullptr;
  const OrtApi* api_ = nullptr;
  OrtEnv* env_ = nullptr;
  OrtSession* session_ = nullptr;
};

// Returns the path of libonnxruntime.so.* below a folder of the checkout.
std::string Find(const std::string& folder) {
  std::error_code ignored;
  for (fs::path at = fs::read_symlink("/proc/self/exe"); at.has_relative_path(); at = at.parent_path()) {
    for (fs::recursive_directory_iterator file(at / folder, ignored), end; file != end; file.increment(ignored)) {
      const std::string path = file->path();
      if (path.find("/onnxruntime/capi/libonnxruntime.so.") != std::string::npos) return path;
      if (file.depth() >= 6) file.disable_recursion_pending();
    }
  }
  ADD_FAILURE() << "there is no libonnxruntime.so.* below " << folder << ": run `make setup`";
  return "";
}

std::string Newer() { return Find(".venv/lib"); }
std::string Older() { return Find(".deps"); }

void ExpectSums(const Runtime& runtime, int count) {
  std::vector<float> a(static_cast<size_t>(count)), b(a.size(), 1), c;
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 1000);
  ASSERT_EQ(runtime.Run(a, b, &c), "");
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(c[i], 2 * a[i] + 1);
}

void ExpectError(const Runtime& runtime) {
  std::vector<float> c;
  const std::string message = runtime.Run({1, 2, 3}, {1, 2}, &c);
  EXPECT_NE(message.find("custom::my_add"), std::string::npos) << message;
  EXPECT_NE(message.find("got 3 and 2"), std::string::npos) << message;
}

TEST(TwoRuntimes, RunSideBySide) {
  const Runtime first(Newer()), second(Older());
  ASSERT_NE(first.version(), second.version());
  for (int round = 0; round < 3; ++round) {
    for (const Runtime* runtime : {&first, &second}) {
      ExpectSums(*runtime, 300001);  // enough for several threads
      ExpectError(*runtime);
    }
  }
  std::vector<std::thread> threads;
  for (const Runtime* runtime : {&first, &second, &first, &second}) {
    threads.emplace_back([runtime] {
      for (int round = 0; round < 10; ++round) {
        ExpectSums(*runtime, 100001);
        ExpectError(*runtime);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A static object is destroyed after those that were constructed later, so the session ends after the operators' own
// static objects would be destroyed.
TEST(EndOfProcessDeathTest, AllowsStaticSession) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static std::unique_ptr<Runtime> kept;
        kept = std::make_unique<Runtime>(Newer());
        ExpectSums(*kept, 10);
        std::exit(HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace polyop::cli
