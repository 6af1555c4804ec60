// SPDX-License-Identifier: Apache-2.0
// lib<library>_torch.so: registers every operator with PyTorch when Python calls polyop_torch_register().
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "adapters/torch/call.h"
#include "adapters/torch/schema.h"
#include "core/guard.h"
#include "core/library.h"
#include "platform/exported.h"

namespace polyop::torch_adapter {
namespace {

using torch::stable::detail::StableLibrary;

// PyTorch calls a boxed kernel without identifying the operator, so each operator has a separate function.
constexpr size_t kMaxOperators = 256;

template <size_t kNumber>
void Boxed(StableIValue* stack, uint64_t, uint64_t) {
  CallOperator(*AllOps()[kNumber], stack);
}

template <size_t kNumber>
void BoxedInto(StableIValue* stack, uint64_t, uint64_t) {
  CallOperatorInto(*AllOps()[kNumber], stack);
}

struct BoxedKernels {
  void (*call)(StableIValue*, uint64_t, uint64_t);
  void (*call_into)(StableIValue*, uint64_t, uint64_t);
};

template <size_t... kNumbers>
constexpr std::array<BoxedKernels, sizeof...(kNumbers)> MakeKernels(std::index_sequence<kNumbers...>) {
  return {BoxedKernels{&Boxed<kNumbers>, &BoxedInto<kNumbers>}...};
}
constexpr auto kKernels = MakeKernels(std::make_index_sequence<kMaxOperators>());

// A PyTorch namespace. The destructor unregisters it.
class Operators {
 public:
  explicit Operators(const char* name)
      : schemas_(StableLibrary::Kind::DEF, name, nullptr, __FILE__, __LINE__),
        cpu_(StableLibrary::Kind::IMPL, name, "CPU", __FILE__, __LINE__)
#if POLYOP_CUDA
        ,
        cuda_(StableLibrary::Kind::IMPL, name, "CUDA", __FILE__, __LINE__)
#endif
  {
  }

  void Add(const char* name, const std::string& schema, void (*kernel)(StableIValue*, uint64_t, uint64_t)) {
    schemas_.def(schema.c_str());
    cpu_.impl(name, kernel);
#if POLYOP_CUDA
    cuda_.impl(name, kernel);
#endif
  }

 private:
  StableLibrary schemas_, cpu_;
#if POLYOP_CUDA
  StableLibrary cuda_;
#endif
};

// Registers torch.ops.<library>.<name>, and torch.ops.<library>_into.<name>, which writes to outputs of the caller and
// has neither fake kernels nor gradients.
std::array<std::unique_ptr<Operators>, 2> MakeOperators() {
  if (const Status names = CheckRegistry(); !names.ok()) throw std::runtime_error("polyop: " + names.message());
  const auto ops = AllOps();
  if (ops.size() > kMaxOperators) throw std::runtime_error("polyop: too many operators for PyTorch's adapter");
  auto operators = std::make_unique<Operators>(LibraryName());
  auto into = std::make_unique<Operators>((std::string(LibraryName()) + "_into").c_str());
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string name(ops[i]->name);
    operators->Add(name.c_str(), SchemaOf(*ops[i]), kKernels[i].call);
    if (OutputsCanBeGiven(*ops[i])) into->Add(name.c_str(), SchemaInto(*ops[i]), kKernels[i].call_into);
  }
  return {std::move(operators), std::move(into)};
}

// Threads of a Python without a global lock may call this at the same time.
void Register() {
  static const auto operators = MakeOperators();  // lives until the process ends
}

}  // namespace
}  // namespace polyop::torch_adapter

/// Registers torch.ops.<library>.*. Returns null, or an error message that lives until the next call.
extern "C" POLYOP_EXPORTED const char* polyop_torch_register() {
  static thread_local std::string message;
  return polyop::Guarded(
      []() -> const char* {
        polyop::torch_adapter::Register();
        return nullptr;
      },
      [](const char* what) -> const char* {
        message = what;
        return message.c_str();
      });
}
