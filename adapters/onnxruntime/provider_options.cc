// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/provider_options.h"

#if ORT_API_VERSION >= 24

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>
#include <vector>

#include "core/library.h"
#include "core/standard_node.h"

namespace polyop::onnxruntime {
namespace {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct ReleasePairs {
  void operator()(OrtKeyValuePairs* pairs) const { Api().ReleaseKeyValuePairs(pairs); }
};

// ONNX Runtime stores an option as an entry of the session's configuration: "ep.polyopexecutionprovider.trace".
Status ReadAll(const OrtSessionOptions* session, NamedTexts* options) {
  std::string prefix = "ep.";
  for (const char c : ProviderName()) prefix += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  prefix += '.';
  OrtKeyValuePairs* raw = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetSessionOptionsConfigEntries(session, &raw)));
  const std::unique_ptr<OrtKeyValuePairs, ReleasePairs> pairs(raw);
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  Api().GetKeyValuePairs(pairs.get(), &keys, &values, &count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = keys[i];
    if (key.starts_with(prefix)) options->emplace_back(key.substr(prefix.size()), values[i]);
  }
  return Status::Ok();
}

Status ReadSwitch(const std::string& name, const std::string& text, bool* value) {
  if (text != "0" && text != "1") {
    return InvalidArgument(ProviderName(), ": option '", name, "': expected 0 or 1, got '", text, "'");
  }
  *value = text == "1";
  return Status::Ok();
}

Status ReadClaim(const std::string& text, ProviderOptions* options) {
  if (text == "all") return Status::Ok();
  options->claims_all = false;
  if (text == "none") return Status::Ok();
  std::string known;
  for (const StandardOperator& standard : StandardOperators()) known += Concat(", ", standard.type);
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string type = text.substr(begin, end - begin);
    if ((known + ",").find(", " + type + ",") == std::string::npos || type.empty()) {
      return InvalidArgument(ProviderName(),
                             ": option 'claim': expected all, none, or types separated by commas out of ",
                             known.substr(std::min<size_t>(2, known.size())), "; got '", type, "'");
    }
    options->claimed.insert(type);
    begin = end + 1;
  }
  return Status::Ok();
}

Status ReadOption(const std::string& name, const std::string& text, ProviderOptions* options) {
  if (name == "claim") return ReadClaim(text, options);
  if (name == "trace") return ReadSwitch(name, text, &options->trace);
  if (name == "only_faster") return ReadSwitch(name, text, &options->only_faster);
  if (name == "patterns") return ReadSwitch(name, text, &options->patterns);
  return InvalidArgument(ProviderName(), ": expected the options claim, only_faster, patterns and trace, got '", name,
                         "'");
}

}  // namespace

std::string ProviderName() {
  std::string name = LibraryName();
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name + "ExecutionProvider";
}

bool HasProviderOptions(const OrtSessionOptions* session) {
  NamedTexts options;
  return CurrentHost().version >= 24 && ReadAll(session, &options).ok() && !options.empty();
}

Status ReadProviderOptions(const OrtSessionOptions* session, ProviderOptions* options) {
  NamedTexts given;
  POLYOP_RETURN_IF_ERROR(ReadAll(session, &given));
  for (const auto& [name, text] : given) POLYOP_RETURN_IF_ERROR(ReadOption(name, text, options));
  return Status::Ok();
}

}  // namespace polyop::onnxruntime

#endif
