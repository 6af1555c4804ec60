// Every operator of the program or library. Kernels are added by static initialisers, before anything asks.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "core/meaning.h"
#include "core/op.h"
#include "core/unload.h"

namespace polyop {
namespace {

struct Registry {
  std::deque<Op> ops;
  std::map<const Definition*, Op*> of_definition;
  std::vector<const Op*> sorted;  // made when it is first asked for
  std::once_flag is_sorted;
};
Registry* registry = nullptr;  // core/unload.h says how long it lives
__attribute__((destructor)) void FreeRegistry() {
  if (!ProcessEnds()) delete registry;
}
Registry& TheRegistry() {
  if (registry == nullptr) registry = new Registry();
  return *registry;
}

struct EndOfProcess {
  ~EndOfProcess() { reached = true; }
  static inline bool reached = false;
} end_of_process;

OpSignature Resolve(const Signature& signature, const std::vector<AttrInfo>& attributes) {
  OpSignature resolved;
  resolved.signature = &signature;
  resolved.attribute_of_name.fill(-1);
  for (int n = 0; n < signature.num_names(); ++n) {
    for (size_t a = 0; a < attributes.size(); ++a) {
      if (attributes[a].spec.name == signature.name(n).text) {
        resolved.attribute_of_name[static_cast<size_t>(n)] = static_cast<int16_t>(a);
      }
    }
  }
  return resolved;
}

}  // namespace

void AddKernel(const Definition& definition, const Kernel& kernel) {
  Op*& op = TheRegistry().of_definition[&definition];
  if (op == nullptr) {
    op = &TheRegistry().ops.emplace_back();
    static_cast<Definition&>(*op) = definition;
    for (const Signature& signature : definition.texts) {
      op->signatures.push_back(Resolve(signature, definition.attributes));
    }
  }
  op->kernels.push_back(kernel);
}

bool ProcessEnds() { return EndOfProcess::reached; }

std::span<const Op* const> AllOps() {
  Registry& all = TheRegistry();
  std::call_once(all.is_sorted, [&] {
    for (const Op& op : all.ops) all.sorted.push_back(&op);
    std::sort(all.sorted.begin(), all.sorted.end(), [](const Op* a, const Op* b) { return a->name < b->name; });
  });
  return all.sorted;
}

const Op* FindOp(std::string_view name) {
  for (const Op* op : AllOps()) {
    if (op->name == name) return op;
  }
  return nullptr;
}

Status CheckNames(std::span<const Op* const> ops) {
  std::set<std::string_view> names;
  for (const Op* op : ops) {
    if (!names.insert(op->name).second) return InvalidArgument("two operators are called '", op->name, "'");
  }
  for (const std::vector<Meaning>& meanings : MeaningsByName(ops)) POLYOP_RETURN_IF_ERROR(CheckShared(meanings));
  return Status::Ok();
}

Status CheckRegistry() {
  static const Status status = CheckNames(AllOps());
  return status;
}

}  // namespace polyop
