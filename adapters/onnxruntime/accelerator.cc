#include "adapters/onnxruntime/accelerator.h"

#include <algorithm>
#include <charconv>

#include "adapters/onnxruntime/registration.h"

namespace polyop::onnxruntime {
namespace {

// The version that stands for models of this opset; none has `since` 0.
NodeName::Standard VersionFor(const NodeName& node, int opset) {
  NodeName::Standard found;
  for (const NodeName::Standard& version : node.standards) {
    if (version.since == 0) continue;
    const bool fits = opset == 0 ? found.since == 0 || version.preset.first != nullptr || found.preset.first != nullptr
                                 : version.since <= opset;
    if (fits) found = version;
  }
  return found;
}

// A kernel of the runtime alone: `first` for the first type that may vary and for what follows it, `rest` for others.
Kernel RuntimesOwn(const Signature& signature, const Kernel& kernel, DType first, DType rest) {
  Kernel made = kernel;
  made.launch = nullptr;
  bool is_first = true;
  for (int i = 0; i < signature.num_inputs(); ++i) {
    if (signature.input(i).type_variable < 0) continue;
    made.inputs[i] = is_first ? first : rest;
    is_first = false;
  }
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (signature.output(o).type_variable >= 0) made.outputs[o] = first;
  }
  return made;
}

// Types that the runtime takes and polyop does not: f64, and inputs of f16 beside others of f32.
void AddRuntimesOwn(const Op& op, const NodeName& node, const Host& host, int since, CustomOps* made) {
  const auto kernel =
      std::find_if(op.kernels.begin(), op.kernels.end(), [](const Kernel& k) { return k.device == Device::kCpu; });
  if (kernel == op.kernels.end()) return;
  const Signature& signature = *op.signatures[kernel->signature].signature;
  for (const auto& [first, rest] : {std::pair(DType::kF64, DType::kF64), std::pair(DType::kF16, DType::kF32),
                                    std::pair(DType::kF32, DType::kF16)}) {
    const Kernel own = RuntimesOwn(signature, *kernel, first, rest);
    if (own.inputs != kernel->inputs) made->push_back(std::make_unique<CustomOp>(op, node, own, nullptr, host, since));
  }
}

// What the session's configuration says, or 0.
Status ReadOpset(const OrtSessionOptions* options, int* opset) {
  int has = 0;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().HasSessionConfigEntry(options, kOpsetKey, &has)));
  if (has == 0) return Status::Ok();
  char text[16] = {};
  size_t size = sizeof text;
  Status status = FromOrt(Api().GetSessionConfigEntry(options, kOpsetKey, text, &size));
  const char* const end = text + (size > 0 && size <= sizeof text ? size - 1 : 0);
  if (status.ok() && std::from_chars(text, end, *opset).ptr == end && *opset > 0) return status;
  return InvalidArgument("session configuration '", kOpsetKey, "' is not the number of an opset");
}

}  // namespace

CustomOps MakeStandardOps(int opset, const Host& host) {
  CustomOps made;
  for (const Op* op : AllOps()) {
    for (const NodeName& node : op->nodes) {
      const NodeName::Standard version = VersionFor(node, opset);
      if (version.since == 0) continue;
      NodeName standing = node;
      if (version.preset.first != nullptr) standing = node.Preset(version.preset.first, version.preset.second);
      AddCustomOps(*op, standing, host, version.since, &made);
      AddRuntimesOwn(*op, standing, host, version.since, &made);
    }
  }
  return made;
}

OrtStatus* RegisterAccelerator(OrtSessionOptions* options, const OrtApiBase* base) {
  int opset = 0;
  {
    const Host host{base->GetApi(kOldestApi), kOldestApi, kOldestApi};
    if (host.api != nullptr) {  // else registering says what is wanted
      const HostScope scope(host);
      if (const Status status = ReadOpset(options, &opset); !status.ok()) return ToOrt(status);
    }
  }
  return Register(options, base, opset, [&](const Host& host) {
    std::vector<OpsOfDomain> all;
    all.push_back({"", MakeStandardOps(opset, host)});
    return all;
  });
}

}  // namespace polyop::onnxruntime
