// libpolyop_torch.so: registers every operator with PyTorch when Python asks it to.
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "adapters/torch/call.h"
#include "adapters/torch/schema.h"

namespace polyop::torch_adapter {
namespace {

using torch::stable::detail::StableLibrary;

// PyTorch calls a boxed kernel without saying which: each operator has a function of its own that knows its number.
constexpr size_t kMostOperators = 256;

template <size_t kNumber>
void Boxed(StableIValue* stack, uint64_t, uint64_t) {
  CallOperator(*AllOps()[kNumber], stack);
}

using BoxedKernel = void (*)(StableIValue*, uint64_t, uint64_t);

template <size_t... kNumbers>
constexpr std::array<BoxedKernel, sizeof...(kNumbers)> MakeKernels(std::index_sequence<kNumbers...>) {
  return {&Boxed<kNumbers>...};
}
constexpr auto kKernels = MakeKernels(std::make_index_sequence<kMostOperators>());

void Register() {
  static std::unique_ptr<StableLibrary> schemas, kernels,
      cuda_kernels;  // they unregister when they go: at the program's end
  if (schemas) return;
  if (const Status names = CheckRegistry(); !names.ok()) throw std::runtime_error("polyop: " + names.message());
  const auto ops = AllOps();
  if (ops.size() > kMostOperators) throw std::runtime_error("polyop: too many operators for PyTorch's adapter");
  schemas = std::make_unique<StableLibrary>(StableLibrary::Kind::DEF, "polyop", nullptr, __FILE__, __LINE__);
  kernels = std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "polyop", "CPU", __FILE__, __LINE__);
#if POLYOP_CUDA
  cuda_kernels = std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "polyop", "CUDA", __FILE__, __LINE__);
#endif
  for (size_t i = 0; i < ops.size(); ++i) {
    schemas->def(SchemaOf(*ops[i]).c_str());
    kernels->impl(std::string(ops[i]->name).c_str(), kKernels[i]);
    if (cuda_kernels) cuda_kernels->impl(std::string(ops[i]->name).c_str(), kKernels[i]);
  }
}

}  // namespace
}  // namespace polyop::torch_adapter

/// Registers torch.ops.polyop.*; null, or what went wrong. The text lives until the next call.
extern "C" __attribute__((visibility("default"))) const char* polyop_torch_register() {
  static std::string message;
  try {
    polyop::torch_adapter::Register();
    return nullptr;
  } catch (const std::exception& e) {
    message = e.what();
    return message.c_str();
  }
}
