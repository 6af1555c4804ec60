// SPDX-License-Identifier: Apache-2.0
// Tests RegisterCustomOps with fake ONNX Runtimes: several in one process, and failing registrations. Each fake rejects
// objects of the others.
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

// The calls of one fake runtime. Functions of the C API have no user data, so each fake has its own functions.
struct Record {
  std::set<const OrtStatus*> statuses;
  std::set<const OrtCustomOpDomain*> domains;
  int created = 0;           // domains, in total
  int adds_until_fail = -1;  // CustomOpDomain_Add fails after this many calls; -1: never
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
        ++record().created;
        return nullptr;
      };
      a.ReleaseCustomOpDomain = [](OrtCustomOpDomain* domain) noexcept {
        EXPECT_EQ(record().domains.erase(domain), 1u);
        delete domain;
      };
      a.CustomOpDomain_Add = [](OrtCustomOpDomain* domain, const OrtCustomOp* op) noexcept -> OrtStatus* {
        EXPECT_EQ(domain->owner, kHost);
        if (record().adds_until_fail == 0) return Make(ORT_FAIL, "out of memory");
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
      // Called by a custom operator in each shape inference: returns an error of this runtime.
      a.ShapeInferContext_GetInputCount = [](const OrtShapeInferContext*, size_t*) noexcept -> OrtStatus* {
        return Make(ORT_INVALID_ARGUMENT, ("runtime " + std::to_string(kHost)).c_str());
      };
      return a;
    }();
    return version <= 17 ? &api : nullptr;
  }
};

// Returns the message of an error of `record`'s runtime and releases it.
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

TEST(Registration, EachRuntimeUsesItsOwnApi) {
  using First = Runtime<1>;
  using Second = Runtime<2>;
  Second::record().version = "1.25.3";  // newer than the API that it provides: the newest available one is used
  OrtSessionOptions first, second;
  ASSERT_EQ(Message(RegisterCustomOps(&first, First::base()), First::record()), "");
  ASSERT_EQ(Message(RegisterCustomOps(&second, Second::base()), Second::record()), "");
  ASSERT_EQ(first.domains.size(), AllDomains().size());
  ASSERT_EQ(second.domains.size(), AllDomains().size());
  ASSERT_EQ(CountOps(first), AllNodes());
  ASSERT_GT(CountOps(first), 0u);
  for (size_t d = 0; d < first.domains.size(); ++d) {
    for (size_t i = 0; i < first.domains[d]->ops.size(); ++i) {  // interleaved
      const OrtCustomOp* of_first = first.domains[d]->ops[i];
      const OrtCustomOp* of_second = second.domains[d]->ops.at(i);
      EXPECT_NE(of_first, of_second);
      if (of_first->InferOutputShapeFn == nullptr) {  // inner inputs may be omitted
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
  int separate = 0;  // the default domain is not shared: another library may add to it
  for (size_t d = 0; d < first.domains.size(); ++d) {
    EXPECT_EQ(first.domains[d]->ops, second.domains[d]->ops);
    EXPECT_EQ(first.domains[d] != second.domains[d], first.domains[d]->name.empty());
    separate += first.domains[d]->name.empty();
  }
  EXPECT_EQ(Only::record().created, static_cast<int>(AllDomains().size()) + separate);
}

// A failed registration leaves nothing behind, however many operators it added, and the next one succeeds.
TEST(Registration, IsAllOrNothing) {
  using Failing = Runtime<4>;
  Record& record = Failing::record();
  const int all = static_cast<int>(AllNodes());
  for (int good : {0, 1, all / 2, all - 1}) {
    record.adds_until_fail = good;
    OrtSessionOptions options;
    EXPECT_EQ(Message(RegisterCustomOps(&options, Failing::base()), record), "out of memory");
    EXPECT_TRUE(options.domains.empty());
    EXPECT_TRUE(record.domains.empty()) << record.domains.size() << " domains were not released";
    EXPECT_TRUE(record.statuses.empty());
  }
  record.adds_until_fail = -1;
  OrtSessionOptions options;
  ASSERT_EQ(Message(RegisterCustomOps(&options, Failing::base()), record), "");
  EXPECT_EQ(CountOps(options), static_cast<size_t>(all));
}

// ONNX Runtime would report only "Domain already set", when a session is created.
TEST(Registration, RejectsASecondRegistration) {
  using Only = Runtime<10>;
  OrtSessionOptions options;
  ASSERT_EQ(Message(RegisterCustomOps(&options, Only::base()), Only::record()), "");
  ASSERT_EQ(Message(RegisterAccelerator(&options, Only::base()), Only::record()), "");
  const size_t domains = options.domains.size(), ops = CountOps(options);
  EXPECT_EQ(Message(RegisterCustomOps(&options, Only::base()), Only::record()),
            "session options: expected the operators of library 'polyop' once, got a second registration: register the "
            "library once, or create new session options");
  options.configuration["polyop.opset"] = "17";  // another table of the accelerator
  EXPECT_NE(Message(RegisterAccelerator(&options, Only::base()), Only::record()).find("the accelerator of library"),
            std::string::npos);
  EXPECT_EQ(options.domains.size(), domains);
  EXPECT_EQ(CountOps(options), ops);

  OrtSessionOptions of_a_copy;  // the numbers in its configuration are those of the copy
  of_a_copy.configuration["polyop.registered.polyop.operators"] = "0x1234-5";
  of_a_copy.configuration["polyop.default_domain"] = "1";
  for (auto register_ops : {RegisterCustomOps, RegisterAccelerator}) {
    EXPECT_NE(Message(register_ops(&of_a_copy, Only::base()), Only::record()).find("expected one copy of library"),
              std::string::npos);
  }
  EXPECT_TRUE(of_a_copy.domains.empty());
}

// Options that have some operators of a registration that failed keep them alive.
TEST(Registration, AFailedStepLeavesNoDanglingOperators) {
  using Failing = Runtime<11>;
  if (CandidatesFor("polyop", "RoiAlign").empty()) GTEST_FAIL() << "this build lacks onnx_roi_align";
  Record& record = Failing::record();
  OrtSessionOptions options;
  ASSERT_EQ(Message(RegisterCustomOps(&options, Failing::base()), record), "");
  record.adds_until_fail = 2;  // of the accelerator's operators
  EXPECT_EQ(Message(RegisterAccelerator(&options, Failing::base()), record), "out of memory");
  record.adds_until_fail = -1;
  for (const OrtCustomOpDomain* domain : options.domains) {
    for (const OrtCustomOp* op : domain->ops) EXPECT_NE(std::string(op->GetName(op)), "");  // AddressSanitizer checks
  }
}

TEST(Registration, RejectsOldRuntimes) {
  using Old = Runtime<5>;
  Old::record().version = "1.16.3";
  OrtSessionOptions options;
  EXPECT_EQ(Message(RegisterCustomOps(&options, Old::base()), Old::record()),
            "polyop: expected ONNX Runtime 1.17 or newer, got 1.16.3");
  EXPECT_TRUE(options.domains.empty());
}

TEST(Registration, RejectsDomainsOfAnotherLibrary) {
  using Only = Runtime<9>;
  const std::string domain = AllDomains().back();
  OrtSessionOptions options;
  options.configuration["polyop.domain." + domain] = "my_ops";
  EXPECT_EQ(
      Message(RegisterCustomOps(&options, Only::base()), Only::record()),
      "domain '" + domain +
          "' is already registered by library 'my_ops', and ONNX Runtime accepts a domain from one library only: use "
          "another domain for the nodes of 'polyop', such as polyop::MyOp");
  EXPECT_TRUE(options.domains.empty());
  EXPECT_EQ(options.configuration.size(), 1u);
  OrtSessionOptions others;
  EXPECT_EQ(Message(RegisterCustomOps(&others, Only::base()), Only::record()), "");
  EXPECT_EQ(others.configuration["polyop.domain." + domain], "polyop");
}

// Returns the first opset whose nodes of this name the accelerator overrides; 0 if none.
int OverriddenSince(const OrtSessionOptions& options, const std::string& op_type) {
  int since = 0;
  for (const OrtCustomOpDomain* domain : options.domains) {
    EXPECT_EQ(domain->name, "");
    for (const OrtCustomOp* op : domain->ops) {
      if (op->GetName(op) != op_type) continue;
      EXPECT_TRUE(since == 0 || since == op->GetStartVersion(op)) << "ONNX Runtime accepts one version of an operator";
      since = op->GetStartVersion(op);
    }
  }
  return since;
}

TEST(Accelerator, OverridesFromTheFirstOpsetOfEqualSemantics) {
  using Only = Runtime<6>;
  if (CandidatesFor("polyop", "RoiAlign").empty()) GTEST_FAIL() << "this build lacks onnx_roi_align";
  const auto since = [](const char* opset, const char* op_type) {
    OrtSessionOptions options;
    if (*opset != 0) options.configuration["polyop.opset"] = opset;
    EXPECT_EQ(Message(RegisterAccelerator(&options, Only::base()), Only::record()), "");
    return OverriddenSince(options, op_type);
  };
  EXPECT_EQ(since("", "RoiAlign"), 16);   // 10 has another default
  EXPECT_EQ(since("11", "RoiAlign"), 1);  // not a version of a kernel of the runtime
  EXPECT_EQ(since("22", "RoiAlign"), 1);
  EXPECT_EQ(since("9", "RoiAlign"), 0);  // the operator does not exist
  EXPECT_EQ(since("", "NonMaxSuppression"), 10);
  EXPECT_EQ(since("17", "NonMaxSuppression"), 11);
  // Builds with sanitizers may lack this operator, whose kernels are the largest.
  const bool has_grids = !CandidatesFor("polyop", "GridSample").empty();
  EXPECT_EQ(since("", "GridSample"), has_grids ? 1 : 0);
}

TEST(Accelerator, SharesTheDefaultDomainWithTheOperators) {
  using Only = Runtime<8>;
  for (const bool accelerator_first : {false, true}) {
    OrtSessionOptions options;
    const auto accelerate = [&] { return Message(RegisterAccelerator(&options, Only::base()), Only::record()); };
    if (accelerator_first) {
      EXPECT_EQ(accelerate(), "");
    }
    EXPECT_EQ(Message(RegisterCustomOps(&options, Only::base()), Only::record()), "");
    if (!accelerator_first) {
      EXPECT_EQ(accelerate(), "");
    }
    int defaults = 0;
    for (const OrtCustomOpDomain* domain : options.domains) defaults += domain->name.empty();
    EXPECT_EQ(defaults, 1);
    EXPECT_EQ(CountOps(options), AllNodes() + MakeStandardOps(0, Host{}).size());
  }
}

TEST(Accelerator, RejectsInvalidOpsets) {
  using Only = Runtime<7>;
  for (const char* wrong : {"x", "0", "-3", "12 ", "11111111111111111111"}) {
    OrtSessionOptions options;
    options.configuration["polyop.opset"] = wrong;
    const std::string message = Message(RegisterAccelerator(&options, Only::base()), Only::record());
    EXPECT_EQ(message, "session configuration 'polyop.opset': expected an integer >= 1") << wrong;
    EXPECT_TRUE(options.domains.empty());
    EXPECT_TRUE(Only::record().statuses.empty());
  }
}

}  // namespace
}  // namespace polyop::onnxruntime
