// SPDX-License-Identifier: Apache-2.0
// The operators of this program or library. Static initialisers add the kernels before the first query.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "core/node_resolution.h"
#include "core/op.h"
#include "core/reference.h"
#include "core/unload.h"

namespace polyop {
namespace {

struct Registry {
  std::deque<Op> ops;
  std::map<const Definition*, Op*> by_definition;
  std::vector<const Op*> sorted;  // created by the first call of AllOps()
  std::once_flag is_sorted;
};
Registry* registry = nullptr;  // see core/unload.h for its lifetime
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

// Returns the number of bytes of the UTF-8 character at the beginning of `text`, or 0 if there is none.
size_t CharacterSize(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF5 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool no_character = (first == 0xED && byte(1) >= 0xA0) || (first == 0xF4 && byte(1) >= 0x90);
  return overlong || no_character ? 0 : size;
}

// Returns an error unless a text of a definition is UTF-8, as JSON requires. Null is valid.
Status CheckUtf8(const Op& op, std::string_view subject, const char* text) {
  const std::string_view all = text == nullptr ? "" : text;
  for (size_t at = 0; at < all.size();) {
    const size_t size = CharacterSize(all.substr(at));
    if (size == 0) {
      return InvalidArgument("operator '", op.name, "', ", subject, ": expected UTF-8, got byte ",
                             static_cast<int>(static_cast<unsigned char>(all[at])), " at offset ", at,
                             ": save the source file as UTF-8");
    }
    at += size;
  }
  return Status::Ok();
}

Status CheckTexts(const Op& op) {
  POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "documentation 'summary'", op.doc.summary));
  POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "documentation 'semantics'", op.doc.semantics));
  POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "documentation 'source'", op.doc.source));
  POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "documentation 'differences'", op.doc.differences));
  POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "documentation 'not_portable'", op.doc.not_portable));
  for (const AttrInfo& info : op.attributes) {
    const std::string subject = Concat("attribute '", info.spec.name, "'");
    POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "an attribute's name", info.spec.name));
    POLYOP_RETURN_IF_ERROR(CheckUtf8(op, subject, info.spec.doc));
    for (const char* alias : info.spec.aliases) POLYOP_RETURN_IF_ERROR(CheckUtf8(op, subject + ", an alias", alias));
    for (const char* choice : info.spec.choices) {
      POLYOP_RETURN_IF_ERROR(CheckUtf8(op, subject + ", a choice", choice));
    }
  }
  for (const NodeName& node : op.nodes) {
    POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "a node name", node.name));
    for (const auto* pairs : {&node.renames, &node.presets, &node.spellings}) {
      for (const NodeName::Pair& pair : *pairs) {
        POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "a node's attribute", pair.first));
        POLYOP_RETURN_IF_ERROR(CheckUtf8(op, "a node's attribute", pair.second));
      }
    }
  }
  return Status::Ok();
}

}  // namespace

void AddKernel(const Definition& definition, const Kernel& kernel) {
  Op*& op = TheRegistry().by_definition[&definition];
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
    POLYOP_RETURN_IF_ERROR(CheckTexts(*op));
  }
  for (const std::vector<NodeCandidate>& candidates : CandidatesByName(ops))
    POLYOP_RETURN_IF_ERROR(CheckSharedName(candidates));
  return Status::Ok();
}

Status CheckRegistry() {
  static const Status status = [] {
    POLYOP_RETURN_IF_ERROR(CheckKernelRequest());
    return CheckNames(AllOps());
  }();
  return status;
}

}  // namespace polyop
