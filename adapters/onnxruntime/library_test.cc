// RegisterCustomOps with stand-ins for ONNX Runtime: several in one process, and registrations that fail. Each stand-in
// refuses what another one made.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

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
  EXPECT_EQ(first.domains, second.domains);
  EXPECT_EQ(Only::record().made, static_cast<int>(AllDomains().size()));
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

}  // namespace
}  // namespace polyop::onnxruntime
