// RegisterCustomOps with stand-ins for ONNX Runtime: several in one process, and registrations that fail. Each stand-in
// refuses what another one made.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/onnxruntime/accelerator.h"
#include "adapters/onnxruntime/custom_op.h"

struct OrtStatus {
  int owner;
  OrtErrorCode code;
  std::string message;
  OrtStatus(int runtime, OrtErrorCode why, const char* text) : owner(runtime), code(why), message(text) {}
};
struct OrtCustomOpDomain {
  int owner;
  std::string name;
  std::vector<const OrtCustomOp*> ops;
  OrtCustomOpDomain(int runtime, const char* text) : owner(runtime), name(text) {}
};
struct OrtSessionOptions {
  std::vector<const OrtCustomOpDomain*> domains;
  std::map<std::string, std::string> configuration;
};

extern "C" OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base);

namespace polyop::onnxruntime {
namespace {

// What a stand-in was asked for. Functions of the C API have no place for it, so each stand-in has its own functions.
struct Record {
  std::set<const OrtStatus*> statuses;
  std::set<const OrtCustomOpDomain*> domains;
  int made = 0;              // domains, ever
  int adds_until_fail = -1;  // CustomOpDomain_Add fails after so many; -1: never
  const char* version = "1.17.0";
};

template <int kHost>
class Runtime {
 public:
  static Record& record() {
    static Record record;
    return record;
  }
  static const OrtApiBase* base() {
    static const OrtApiBase base = {GetApi, []() noexcept { return record().version; }};
    return &base;
  }

 private:
  static OrtStatus* Make(OrtErrorCode code, const char* message) noexcept {
    OrtStatus* status = std::make_unique<OrtStatus>(kHost, code, message).release();
    record().statuses.insert(status);
    return status;
  }
  static const OrtApi* GetApi(uint32_t version) noexcept {
    static const OrtApi api = [] {
      OrtApi a = {};
      a.CreateStatus = Make;
      a.GetErrorCode = [](const OrtStatus* status) noexcept {
        EXPECT_EQ(status->owner, kHost);
        return status->code;
      };
      a.GetErrorMessage = [](const OrtStatus* status) noexcept {
        EXPECT_EQ(status->owner, kHost);
        return status->message.c_str();
      };
      a.ReleaseStatus = [](OrtStatus* status) noexcept {
        EXPECT_EQ(record().statuses.erase(status), 1u);
        delete status;
      };
      a.CreateCustomOpDomain = [](const char* name, OrtCustomOpDomain** domain) noexcept -> OrtStatus* {
        *domain = std::make_unique<OrtCustomOpDomain>(kHost, name).release();
        record().domains.insert(*domain);
        ++record().made;
        return nullptr;
      };
      a.ReleaseCustomOpDomain = [](OrtCustomOpDomain* domain) noexcept {
        EXPECT_EQ(record().domains.erase(domain), 1u);
        delete domain;
      };
      a.CustomOpDomain_Add = [](OrtCustomOpDomain* domain, const OrtCustomOp* op) noexcept -> OrtStatus* {
        EXPECT_EQ(domain->owner, kHost);
        if (record().adds_until_fail == 0) return Make(ORT_FAIL, "there is no room");
        if (record().adds_until_fail > 0) --record().adds_until_fail;
        domain->ops.push_back(op);
        return nullptr;
      };
      a.AddCustomOpDomain = [](OrtSessionOptions* options, OrtCustomOpDomain* domain) noexcept -> OrtStatus* {
        EXPECT_EQ(domain->owner, kHost);
        options->domains.push_back(domain);
        return nullptr;
      };
      a.AddSessionConfigEntry = [](OrtSessionOptions* options, const char* key,
                                   const char* value) noexcept -> OrtStatus* {
        options->configuration[key] = value;
        return nullptr;
      };
      a.HasSessionConfigEntry = [](const OrtSessionOptions* options, const char* key, int* has) noexcept -> OrtStatus* {
        *has = options->configuration.contains(key) ? 1 : 0;
        return nullptr;
      };
      a.GetSessionConfigEntry = [](const OrtSessionOptions* options, const char* key, char* value,
                                   size_t* size) noexcept -> OrtStatus* {
        const std::string& text = options->configuration.at(key);
        if (*size < text.size() + 1) return Make(ORT_INVALID_ARGUMENT, "the buffer is too small");
        *size = text.size() + 1;
        std::copy_n(text.c_str(), *size, value);
        return nullptr;
      };
      // A question that a custom operator asks in each shape inference: the answer is an error of this runtime.
      a.ShapeInferContext_GetInputCount = [](const OrtShapeInferContext*, size_t*) noexcept -> OrtStatus* {
        return Make(ORT_INVALID_ARGUMENT, ("runtime " + std::to_string(kHost)).c_str());
      };
      return a;
    }();
    return version <= 17 ? &api : nullptr;
  }
};

// The message of an error, which `record`'s runtime made; it is released.
std::string Message(OrtStatus* status, Record& record) {
  if (status == nullptr) return "";
  EXPECT_EQ(record.statuses.erase(status), 1u);
  const std::string message = status->message;
  delete status;
  return message;
}

size_t CountOps(const OrtSessionOptions& options) {
  size_t count = 0;
  for (const OrtCustomOpDomain* domain : options.domains) count += domain->ops.size();
  return count;
}

size_t AllNodes() {
  size_t count = 0;
  for (const std::string& domain : AllDomains()) count += MakeCustomOps(domain, Host{}).size();
  return count;
}

TEST(Registration, EachRuntimeIsServedByItsOwnApi) {
  using First = Runtime<1>;
  using Second = Runtime<2>;
  Second::record().version = "1.25.3";  // newer than the API that it gives: the newest that there is will do
  OrtSessionOptions first, second;
  ASSERT_EQ(Message(RegisterCustomOps(&first, First::base()), First::record()), "");
  ASSERT_EQ(Message(RegisterCustomOps(&second, Second::base()), Second::record()), "");
  ASSERT_EQ(first.domains.size(), AllDomains().size());
  ASSERT_EQ(second.domains.size(), AllDomains().size());
  ASSERT_EQ(CountOps(first), AllNodes());
  ASSERT_GT(CountOps(first), 0u);
  for (size_t d = 0; d < first.domains.size(); ++d) {
    for (size_t i = 0; i < first.domains[d]->ops.size(); ++i) {  // in turns
      const OrtCustomOp* of_first = first.domains[d]->ops[i];
      const OrtCustomOp* of_second = second.domains[d]->ops.at(i);
      EXPECT_NE(of_first, of_second);
      if (of_first->InferOutputShapeFn == nullptr) {  // inputs may be left out between others
        EXPECT_EQ(of_second->InferOutputShapeFn, nullptr);
        continue;
      }
      EXPECT_EQ(Message(of_first->InferOutputShapeFn(of_first, nullptr), First::record()), "runtime 1");
      EXPECT_EQ(Message(of_second->InferOutputShapeFn(of_second, nullptr), Second::record()), "runtime 2");
    }
  }
  EXPECT_TRUE(First::record().statuses.empty());
  EXPECT_TRUE(Second::record().statuses.empty());
}

TEST(Registration, ManyOptionsShareOneTable) {
  using Only = Runtime<3>;
  OrtSessionOptions first, second;
  ASSERT_EQ(Message(RegisterCustomOps(&first, Only::base()), Only::record()), "");
  ASSERT_EQ(Message(RegisterCustomOps(&second, Only::base()), Only::record()), "");
  ASSERT_EQ(first.domains.size(), second.domains.size());
  int own = 0;  // the default domain: another library may add to it
  for (size_t d = 0; d < first.domains.size(); ++d) {
    EXPECT_EQ(first.domains[d]->ops, second.domains[d]->ops);
    EXPECT_EQ(first.domains[d] != second.domains[d], first.domains[d]->name.empty());
    own += first.domains[d]->name.empty();
  }
  EXPECT_EQ(Only::record().made, static_cast<int>(AllDomains().size()) + own);
}

// However many operators were added before: nothing of a failed registration is left, and the next one is whole.
TEST(Registration, IsAllOrNothing) {
  using Failing = Runtime<4>;
  Record& record = Failing::record();
  const int all = static_cast<int>(AllNodes());
  for (int good : {0, 1, all / 2, all - 1}) {
    record.adds_until_fail = good;
    OrtSessionOptions options;
    EXPECT_EQ(Message(RegisterCustomOps(&options, Failing::base()), record), "there is no room");
    EXPECT_TRUE(options.domains.empty());
    EXPECT_TRUE(record.domains.empty()) << record.domains.size() << " domains were not released";
    EXPECT_TRUE(record.statuses.empty());
  }
  record.adds_until_fail = -1;
  OrtSessionOptions options;
  ASSERT_EQ(Message(RegisterCustomOps(&options, Failing::base()), record), "");
  EXPECT_EQ(CountOps(options), static_cast<size_t>(all));
}

TEST(Registration, ARuntimeThatIsTooOldIsToldOf) {
  using Old = Runtime<5>;
  Old::record().version = "1.16.3";
  OrtSessionOptions options;
  EXPECT_EQ(Message(RegisterCustomOps(&options, Old::base()), Old::record()),
            "polyop needs ONNX Runtime 1.17 or newer, this is 1.16.3");
  EXPECT_TRUE(options.domains.empty());
}

TEST(Registration, ADomainOfAnotherLibraryIsLeftAlone) {
  using Only = Runtime<9>;
  const std::string domain = AllDomains().back();
  OrtSessionOptions options;
  options.configuration["polyop.domain." + domain] = "my_ops";
  EXPECT_EQ(
      Message(RegisterCustomOps(&options, Only::base()), Only::record()),
      "the domain '" + domain +
          "' has operators of the library 'my_ops' already, and ONNX Runtime takes a domain from one library: give "
          "the nodes of 'polyop' another one, as in polyop::MyOp");
  EXPECT_TRUE(options.domains.empty());
  EXPECT_EQ(options.configuration.size(), 1u);
  OrtSessionOptions others;
  EXPECT_EQ(Message(RegisterCustomOps(&others, Only::base()), Only::record()), "");
  EXPECT_EQ(others.configuration["polyop.domain." + domain], "polyop");
}

// From which opset on the accelerator answers to nodes of this name; 0: it does not.
int AnsweredSince(const OrtSessionOptions& options, const std::string& op_type) {
  int since = 0;
  for (const OrtCustomOpDomain* domain : options.domains) {
    EXPECT_EQ(domain->name, "");
    for (const OrtCustomOp* op : domain->ops) {
      if (op->GetName(op) != op_type) continue;
      EXPECT_TRUE(since == 0 || since == op->GetStartVersion(op)) << "one version of an operator is possible";
      since = op->GetStartVersion(op);
    }
  }
  return since;
}

TEST(Accelerator, AnswersFromTheFirstOpsetOfEqualMeaning) {
  using Only = Runtime<6>;
  if (MeaningsOf("polyop", "RoiAlign").empty()) GTEST_FAIL() << "this build lacks onnx_roi_align";
  const auto since = [](const char* opset, const char* op_type) {
    OrtSessionOptions options;
    if (*opset != 0) options.configuration["polyop.opset"] = opset;
    EXPECT_EQ(Message(RegisterAccelerator(&options, Only::base()), Only::record()), "");
    return AnsweredSince(options, op_type);
  };
  EXPECT_EQ(since("", "RoiAlign"), 16);   // 10 had another default
  EXPECT_EQ(since("11", "RoiAlign"), 1);  // no version of a kernel of the runtime's own
  EXPECT_EQ(since("22", "RoiAlign"), 1);
  EXPECT_EQ(since("9", "RoiAlign"), 0);  // there was none
  EXPECT_EQ(since("", "NonMaxSuppression"), 10);
  EXPECT_EQ(since("17", "NonMaxSuppression"), 11);
  // The largest of kernels is not in every build with sanitizers.
  const bool has_grids = !MeaningsOf("polyop", "GridSample").empty();
  EXPECT_EQ(since("", "GridSample"), has_grids ? 1 : 0);
}

TEST(Accelerator, SharesTheDefaultDomainWithTheOperators) {
  using Only = Runtime<8>;
  for (const bool accelerator_first : {false, true}) {
    OrtSessionOptions options;
    const auto accelerate = [&] { return Message(RegisterAccelerator(&options, Only::base()), Only::record()); };
    if (accelerator_first) EXPECT_EQ(accelerate(), "");
    EXPECT_EQ(Message(RegisterCustomOps(&options, Only::base()), Only::record()), "");
    if (!accelerator_first) EXPECT_EQ(accelerate(), "");
    int defaults = 0;
    for (const OrtCustomOpDomain* domain : options.domains) defaults += domain->name.empty();
    EXPECT_EQ(defaults, 1);
    EXPECT_EQ(CountOps(options), AllNodes() + MakeStandardOps(0, Host{}).size());
  }
}

TEST(Accelerator, AWrongOpsetIsTold) {
  using Only = Runtime<7>;
  for (const char* wrong : {"x", "0", "-3", "12 ", "11111111111111111111"}) {
    OrtSessionOptions options;
    options.configuration["polyop.opset"] = wrong;
    const std::string message = Message(RegisterAccelerator(&options, Only::base()), Only::record());
    EXPECT_EQ(message, "session configuration 'polyop.opset' is not a number, 1 or greater") << wrong;
    EXPECT_TRUE(options.domains.empty());
    EXPECT_TRUE(Only::record().statuses.empty());
  }
}

}  // namespace
}  // namespace polyop::onnxruntime
