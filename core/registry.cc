// Every operator of the program or library. Kernels are added by static initialisers, before anything asks.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

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

const Op* FindOpByNode(std::string_view domain, std::string_view op_type, const NodeName** node) {
  for (const Op* op : AllOps()) {
    for (const NodeName& n : op->nodes) {
      if (n.domain() != domain || n.op_type() != op_type) continue;
      if (node != nullptr) *node = &n;
      return op;
    }
  }
  return nullptr;
}

Status CheckNames(std::span<const Op* const> ops) {
  std::map<std::string_view, const Op*> names, nodes;
  for (const Op* op : ops) {
    if (!names.emplace(op->name, op).second) return InvalidArgument("two operators are called '", op->name, "'");
    for (const NodeName& node : op->nodes) {
      const auto [other, is_new] = nodes.emplace(node.name, op);
      if (!is_new) {
        return InvalidArgument("operators '", other->second->name, "' and '", op->name, "' both answer to node ",
                               node.name);
      }
    }
  }
  return Status::Ok();
}

Status CheckRegistry() {
  static const Status status = CheckNames(AllOps());
  return status;
}

}  // namespace polyop
