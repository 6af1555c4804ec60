// What an operator's folder includes: the words to define it and to register its kernels.
//
//   struct MyOp {                                        // ops/my_op/my_op.h
//     float factor = 2.0f;
//     static constexpr const char* kName = "my_op";
//     static constexpr Signature kSignature = "a: T[...A] -> b: T[...A]";
//     static constexpr NodeName kNodes[] = {"custom::my_op"};
//     static constexpr std::tuple kAttributes = {Attr("factor", &MyOp::factor, "what a is multiplied by")};
//     static constexpr Doc kDoc = {.summary = "…"};
//     Status Check() const;                              // optional: what attributes must satisfy together
//     Status CheckInputs(std::span<const AnyTensor>) const;  // optional: what inputs must satisfy beyond the signature
//   };
//
//   template <class T>                                   // ops/my_op/my_op_cpu.cc
//   Status MyOpCpu(const MyOp& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> b);
//   POLYOP_CPU_KERNEL(MyOp, MyOpF32, MyOpCpu<float>);
//
// A kernel's parameters are the struct, the context, the inputs and the outputs in the signature's order:
//   T[…]  Tensor<const T, rank>     (rank kAnyRank where the signature has "...")
//   ?     std::optional<Tensor<…>>  any  AnyTensor       variadic  TensorList<const T, rank>
//   K<=   Pending<T, rank>
// They are checked against the signature when the file is compiled. An operator with several signatures
// has `static constexpr Signature kSignatures[]`; a kernel belongs to the first that its ranks match.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/context.h"
#include "core/definition.h"

namespace polyop {
namespace operator_internal {

/// What a kernel's parameter type says of its tensor.
struct ArgSpec {
  DType dtype = DType::kF32;
  bool is_const = false, optional = false, variadic = false, pending = false, any = false;
  int rank = kAnyRank;
};

template <class A>
struct ArgTraits;

template <class T, int R>
struct ArgTraits<Tensor<T, R>> {
  static constexpr ArgSpec kSpec = {
      .dtype = kDTypeOf<std::remove_const_t<T>>, .is_const = std::is_const_v<T>, .rank = R};
  static Tensor<T, R> Make(const AnyTensor& t, const Launch&, int) {
    return Tensor<T, R>(static_cast<T*>(t.data), t.shape);
  }
};
template <class T, int R>
struct ArgTraits<TensorList<T, R>> {
  static constexpr ArgSpec kSpec = {
      .dtype = kDTypeOf<std::remove_const_t<T>>, .is_const = std::is_const_v<T>, .variadic = true, .rank = R};
};
template <class T, int R>
struct ArgTraits<Pending<T, R>> {
  static constexpr ArgSpec kSpec = {.dtype = kDTypeOf<T>, .pending = true, .rank = R};
  static Pending<T, R> Make(const AnyTensor& t, const Launch& launch, int output) {
    return Pending<T, R>(launch.source, output, t.shape, launch.most[static_cast<size_t>(output)]);
  }
};
template <>
struct ArgTraits<AnyTensor> {
  static constexpr ArgSpec kSpec = {.is_const = true, .any = true};
  static AnyTensor Make(const AnyTensor& t, const Launch&, int) { return t; }
};
template <class A>
struct ArgTraits<std::optional<A>> {
  static constexpr ArgSpec kSpec = [] {
    ArgSpec spec = ArgTraits<A>::kSpec;
    spec.optional = true;
    return spec;
  }();
  static std::optional<A> Make(const AnyTensor& t, const Launch& launch, int index) {
    if (!t.present) return std::nullopt;
    return ArgTraits<A>::Make(t, launch, index);
  }
};

constexpr bool Matches(const TensorSpec& spec, const ArgSpec& arg, bool is_input, std::array<int, 4>& variables) {
  if (spec.any_dtype != arg.any || spec.optional != arg.optional || spec.variadic != arg.variadic) return false;
  if (is_input != arg.is_const || spec.pending() != arg.pending) return false;
  if (arg.any) return true;
  if (arg.rank != (spec.has_rest ? kAnyRank : spec.rank)) return false;
  if (spec.type_variable < 0) return spec.dtype == arg.dtype;
  int& variable = variables[spec.type_variable];
  if (variable < 0) variable = static_cast<int>(arg.dtype);
  return variable == static_cast<int>(arg.dtype);
}

template <class... Args>
constexpr bool MatchesAll(const Signature& signature) {
  constexpr std::array<ArgSpec, sizeof...(Args)> args = {ArgTraits<Args>::kSpec...};
  if (signature.num_inputs() + signature.num_outputs() != static_cast<int>(args.size())) return false;
  std::array<int, 4> variables = {-1, -1, -1, -1};
  for (int i = 0; i < signature.num_inputs(); ++i) {
    if (!Matches(signature.input(i), args[i], true, variables)) return false;
  }
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (!Matches(signature.output(o), args[signature.num_inputs() + o], false, variables)) return false;
  }
  return true;
}

template <class P>
concept HasSeveralSignatures = requires { P::kSignatures; };

template <class P>
constexpr std::span<const Signature> SignaturesOf() {
  if constexpr (HasSeveralSignatures<P>) {
    return P::kSignatures;
  } else {
    return {&P::kSignature, 1};
  }
}

template <class P, class... Args>
constexpr int FindSignature() {
  int index = 0;
  for (const Signature& signature : SignaturesOf<P>()) {
    if (MatchesAll<Args...>(signature)) return index;
    ++index;
  }
  return -1;
}

/// Every name that a signature takes for an attribute is one.
template <class P>
constexpr bool AttributesExist() {
  for (const Signature& signature : SignaturesOf<P>()) {
    for (int n = 0; n < signature.num_names(); ++n) {
      if (signature.name(n).kind != NameSpec::Kind::kAttribute) continue;
      const bool found =
          std::apply([&](const auto&... a) { return ((std::string_view(a.name) == signature.name(n).text) || ...); },
                     P::kAttributes);
      if (!found) return false;
    }
  }
  return true;
}

/// What a node name's condition asks for holds in every node of the operator.
template <class P>
constexpr bool ConditionsHold() {
  for (const NodeName& node : P::kNodes) {
    const auto holds = [&](const AttrSpec& spec) {
      return spec.required && std::string_view(spec.name) == node.when.attribute &&
             (node.when.least == NodeName::Condition::kAnyValue || spec.least >= static_cast<double>(node.when.least));
    };
    if (node.when.attribute == nullptr) continue;
    if (!std::apply([&](const auto&... a) { return (holds(a) || ...); }, P::kAttributes)) return false;
  }
  return true;
}

template <class P>
const Definition& DefinitionOf() {
  static_assert(AttributesExist<P>(),
                "the signature names something that is neither an extent, an input nor an attribute");
  static_assert(ConditionsHold<P>(),
                "a node name's When() names no attribute that is required and has that least value");
  static const Definition kDefinition = [] {
    Definition d;
    d.name = P::kName;
    d.doc = P::kDoc;
    d.texts = SignaturesOf<P>();
    [&]<size_t... I>(std::index_sequence<I...>) {
      (d.attributes.push_back(attributes_internal::Erase<P, I>()), ...);
    }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(P::kAttributes)>>>());
    d.nodes = P::kNodes;
    d.create_params = []() -> void* { return new P(); };
    d.destroy_params = [](void* p) { delete static_cast<P*>(p); };
    d.check_params = [](const void* p) -> Status {
      if constexpr (requires(const P& params) { params.Check(); }) {
        return static_cast<const P*>(p)->Check();
      } else {
        return Status::Ok();
      }
    };
    d.check_inputs = [](const void* p, std::span<const AnyTensor> inputs) -> Status {
      if constexpr (requires(const P& params) { params.CheckInputs(inputs); }) {
        return static_cast<const P*>(p)->CheckInputs(inputs);
      } else {
        return Status::Ok();
      }
    };
    if constexpr (requires(const P& params, std::span<const AnyTensor> inputs) { params.LeaveToStandard(inputs); }) {
      d.leave_to_standard = [](const void* p, std::span<const AnyTensor> inputs) {
        return static_cast<const P*>(p)->LeaveToStandard(inputs);
      };
    }
    return d;
  }();
  return kDefinition;
}

// Makes the argument number I of a kernel; a variadic input takes all tensors from its place on.
template <class A, class P, int kSignature, size_t I>
A MakeArgument(const Launch& launch) {
  constexpr const Signature& signature = SignaturesOf<P>()[kSignature];
  constexpr int kInputs = signature.num_inputs();
  if constexpr (ArgTraits<A>::kSpec.variadic) {
    A list;
    for (size_t i = I; i < launch.inputs.size(); ++i) {
      using View = Tensor<typename A::Element, A::kRank>;
      list.push_back(ArgTraits<View>::Make(launch.inputs[i], launch, static_cast<int>(i)));
    }
    return list;
  } else if constexpr (I < kInputs) {
    static const AnyTensor kAbsent;
    return ArgTraits<A>::Make(I < launch.inputs.size() ? launch.inputs[I] : kAbsent, launch, static_cast<int>(I));
  } else {
    return ArgTraits<A>::Make(launch.outputs[I - kInputs], launch, static_cast<int>(I - kInputs));
  }
}

template <class Call, class P, class ContextType, int kSignature, class... Args>
Status LaunchKernel(const Launch& launch) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return Call{}(*static_cast<const P*>(launch.params), *static_cast<const ContextType*>(launch.context),
                  MakeArgument<Args, P, kSignature, I>(launch)...);
  }(std::make_index_sequence<sizeof...(Args)>());
}

/// Registers `Call{}` (a stateless callable) that has the parameters of the function `pointer`.
template <class P, Device kDevice, class Call, class ContextType, class... Args>
bool Register(Call, Status (*)(const P&, const ContextType&, Args...)) {
  constexpr int kSignature = FindSignature<P, std::remove_cvref_t<Args>...>();
  static_assert(kSignature >= 0,
                "the kernel's parameters do not match the signature (order, const inputs, rank, type)");
  Kernel kernel;
  kernel.device = kDevice;
  kernel.signature = kSignature;
  constexpr std::array<ArgSpec, sizeof...(Args)> kArgs = {ArgTraits<std::remove_cvref_t<Args>>::kSpec...};
  constexpr int kInputs = SignaturesOf<P>()[kSignature].num_inputs();
  for (size_t i = 0; i < kArgs.size(); ++i) {
    (i < kInputs ? kernel.inputs[i] : kernel.outputs[i - kInputs]) = kArgs[i].dtype;
  }
  kernel.launch = &LaunchKernel<Call, P, ContextType, kSignature, std::remove_cvref_t<Args>...>;
  AddKernel(DefinitionOf<P>(), kernel);
  return true;
}

}  // namespace operator_internal

/// Registers a plain function (no run-time dispatch over ISAs) as a kernel of a device.
#define POLYOP_KERNEL(OP, DEVICE, ID, ...)                                                                \
  [[maybe_unused]] static const bool ID##_registered = ::polyop::operator_internal::Register<OP, DEVICE>( \
      [](auto&&... arguments) { return __VA_ARGS__(arguments...); }, &__VA_ARGS__)

/// Registers a kernel of the CPU that has no instruction set of its own; POLYOP_CPU_KERNEL of kernels/cpu/simd.h is for
/// those that are compiled once for each.
#define POLYOP_PLAIN_CPU_KERNEL(OP, ID, ...) POLYOP_KERNEL(OP, ::polyop::Device::kCpu, ID, __VA_ARGS__)

/// Registers the naive double-precision kernel: the truth for tests and `polyop verify`.
#define POLYOP_REFERENCE_KERNEL(OP, ID, ...) POLYOP_KERNEL(OP, ::polyop::Device::kReference, ID, __VA_ARGS__)

}  // namespace polyop
