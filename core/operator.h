// SPDX-License-Identifier: Apache-2.0
// The header that operators include: it defines an operator and registers its kernels.
//
//   struct MyOp {                                        // ops/my_op/my_op.h
//     float factor = 2.0f;
//     static constexpr const char* kName = "my_op";
//     static constexpr Signature kSignature = "a: T[...A] -> b: T[...A]";
//     static constexpr NodeName kNodes[] = {"custom::my_op"};
//     static constexpr std::tuple kAttributes = {Attr("factor", &MyOp::factor, "what a is multiplied by")};
//     static constexpr Doc kDoc = {.summary = "…"};
//     Status Check() const;                              // optional: conditions on several attributes
//     Status CheckInputs(std::span<const AnyTensor>) const;  // optional: conditions on inputs beyond the signature
//   };
//
//   template <class T>                                   // ops/my_op/my_op_cpu.cc
//   Status MyOpCpu(const MyOp& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> b);
//   POLYOP_CPU_KERNELS(MyOp, MyOpCpu, float, Half, BFloat16);
//
// A kernel's parameters are the struct, the context, the inputs and the outputs in the signature's order:
//   T[…]  Tensor<const T, rank>     (rank kAnyRank where the signature has "...")
//   ?     std::optional<Tensor<…>>  any  AnyTensor       variadic  TensorList<const T, rank>
//   K<=   Pending<T, rank>
// They are checked against the signature at compile time. An operator with several signatures has
// `static constexpr Signature kSignatures[]`; a kernel belongs to the first signature that matches its parameters.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/context.h"
#include "core/definition.h"

namespace polyop {
namespace operator_internal {

/// The properties of a tensor that follow from a kernel's parameter type.
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
    return Pending<T, R>(launch.source, output, t.shape, launch.max_shapes[static_cast<size_t>(output)]);
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

/// Returns the number of outputs with an extent that the kernel finds.
constexpr int NumPending(const Signature& signature) {
  int count = 0;
  for (int o = 0; o < signature.num_outputs(); ++o) count += signature.output(o).pending();
  return count;
}

/// Returns the first input with a type variable, or -1.
constexpr int InputOfVariable(const Signature& signature, int variable) {
  for (int i = 0; i < signature.num_inputs(); ++i) {
    if (signature.input(i).type_variable == variable) return i;
  }
  return -1;
}

/// Returns true if two signatures give an output the same type for the same input types.
constexpr bool SameOutputType(const Signature& a, const Signature& b, int output) {
  const TensorSpec &ta = a.output(output), &tb = b.output(output);
  if ((ta.type_variable < 0) != (tb.type_variable < 0)) return false;
  if (ta.type_variable < 0) return ta.dtype == tb.dtype;
  return InputOfVariable(a, ta.type_variable) == InputOfVariable(b, tb.type_variable);
}

/// Returns true if an operator's signatures have the same outputs, and the same output types if as many of their
/// outputs have extents that the kernel finds. TensorRT asks for the output types before it knows the inputs' ranks, so
/// only the number of such outputs (`polyop_size_tensors`) can select the signature.
template <class P>
constexpr bool OutputsAgree() {
  for (const Signature& a : SignaturesOf<P>()) {
    for (const Signature& b : SignaturesOf<P>()) {
      if (a.num_outputs() != b.num_outputs()) return false;
      for (int o = 0; o < a.num_outputs(); ++o) {
        if (a.output(o).optional != b.output(o).optional) return false;
        if (NumPending(a) == NumPending(b) && !SameOutputType(a, b, o)) return false;
      }
    }
  }
  return true;
}

/// Returns true if every name that a signature uses as an attribute is one.
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

/// Returns true if every node of the operator fulfils the conditions of its node names.
template <class P>
constexpr bool ConditionsHold() {
  for (const NodeName& node : P::kNodes) {
    const auto holds = [&](const AttrSpec& spec) {
      return spec.required && std::string_view(spec.name) == node.when.attribute &&
             (node.when.min == NodeName::Condition::kAnyValue || spec.min >= static_cast<double>(node.when.min));
    };
    if (node.when.attribute == nullptr) continue;
    if (!std::apply([&](const auto&... a) { return (holds(a) || ...); }, P::kAttributes)) return false;
  }
  return true;
}

/// Returns true if the struct has a CheckInputs(). A gradient does not inherit the operator's: its inputs are others.
template <class P>
constexpr bool ChecksInputs() {
  if constexpr (requires { typename P::ForwardOperator; }) {
    if constexpr (requires { &P::CheckInputs; }) {
      return !std::is_same_v<decltype(&P::CheckInputs),
                             Status (P::ForwardOperator::*)(std::span<const AnyTensor>) const>;
    } else {
      return false;
    }
  } else {
    return requires(const P& params, std::span<const AnyTensor> inputs) { params.CheckInputs(inputs); };
  }
}

template <class P>
const Definition& DefinitionOf() {
  static_assert(AttributesExist<P>(),
                "the signature names something that is neither an extent, an input nor an attribute");
  static_assert(OutputsAgree<P>(),
                "signatures with different outputs or output types need different numbers of found extents");
  static_assert(ConditionsHold<P>(), "a node name's When() needs a required attribute with that minimum");
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
      if constexpr (ChecksInputs<P>()) {
        return static_cast<const P*>(p)->CheckInputs(inputs);
      } else {
        return Status::Ok();
      }
    };
    if constexpr (requires { typename P::ForwardOperator; }) {
      d.gradient_of = P::ForwardOperator::kName;
      d.output_mask = [](const void* p) { return static_cast<const P*>(p)->output_mask; };
    }
    if constexpr (requires(const P& params, std::span<const AnyTensor> inputs) { params.LeaveToStandard(inputs); }) {
      d.leave_to_standard = [](const void* p, std::span<const AnyTensor> inputs) {
        return static_cast<const P*>(p)->LeaveToStandard(inputs);
      };
    }
    return d;
  }();
  return kDefinition;
}

// Creates argument I of a kernel. A variadic input takes all tensors from index I on.
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

/// Registers a function as a kernel of a device. ID is unique in the file.
#define POLYOP_KERNEL(OP, DEVICE, ID, ...)                                                                \
  [[maybe_unused]] static const bool ID##_registered = ::polyop::operator_internal::Register<OP, DEVICE>( \
      [](auto&&... arguments) { return __VA_ARGS__(arguments...); }, &__VA_ARGS__)

/// Registers a CPU kernel that is compiled once; POLYOP_CPU_KERNEL of kernels/cpu/simd.h registers one that is compiled
/// for each instruction set.
#define POLYOP_PLAIN_CPU_KERNEL(OP, FUNCTION) POLYOP_PLAIN_CPU_KERNEL_AS(OP, OP##FUNCTION, FUNCTION)
#define POLYOP_PLAIN_CPU_KERNEL_AS(OP, ID, ...) POLYOP_KERNEL(OP, ::polyop::Device::kCpu, ID, __VA_ARGS__)

/// Registers the naive double-precision kernel, the reference of tests and `polyop verify`.
#define POLYOP_REFERENCE_KERNEL(OP, FUNCTION) POLYOP_REFERENCE_KERNEL_AS(OP, OP##FUNCTION, FUNCTION)
#define POLYOP_REFERENCE_KERNEL_AS(OP, ID, ...) POLYOP_KERNEL(OP, ::polyop::Device::kReference, ID, __VA_ARGS__)

/// Like the macros above, for several types of a kernel template: POLYOP_PLAIN_CPU_KERNELS(Argsort, ArgsortCpu,
/// int32_t, int64_t). A list of two or more template arguments is in parentheses: (float, int32_t).
#define POLYOP_PLAIN_CPU_KERNELS(OP, FUNCTION, ...) \
  POLYOP_FOR_EACH_TYPE(POLYOP_PLAIN_CPU_KERNEL_AS, OP, FUNCTION, __VA_ARGS__)
#define POLYOP_REFERENCE_KERNELS(OP, FUNCTION, ...) \
  POLYOP_FOR_EACH_TYPE(POLYOP_REFERENCE_KERNEL_AS, OP, FUNCTION, __VA_ARGS__)

/// Expands to `REGISTER(OP, ID, FUNCTION<Type>);` for each type, each with a different ID. At most 64 types.
#define POLYOP_FOR_EACH_TYPE(REGISTER, OP, FUNCTION, ...) \
  POLYOP_EXPAND(POLYOP_NEXT_TYPE(REGISTER, OP, FUNCTION, OP##FUNCTION, __VA_ARGS__))
#define POLYOP_NEXT_TYPE(REGISTER, OP, FUNCTION, ID, TYPE, ...) \
  REGISTER(OP, ID, FUNCTION<POLYOP_WITHOUT_PARENTHESES(TYPE)>)  \
  __VA_OPT__(; POLYOP_NEXT_TYPE_AGAIN POLYOP_PARENTHESES(REGISTER, OP, FUNCTION, ID##x, __VA_ARGS__))
// A macro does not expand itself: each scan expands the name that the one before left.
#define POLYOP_NEXT_TYPE_AGAIN() POLYOP_NEXT_TYPE
#define POLYOP_PARENTHESES ()
#define POLYOP_EXPAND(...) POLYOP_EXPAND_16(POLYOP_EXPAND_16(POLYOP_EXPAND_16(POLYOP_EXPAND_16(__VA_ARGS__))))
#define POLYOP_EXPAND_16(...) POLYOP_EXPAND_4(POLYOP_EXPAND_4(POLYOP_EXPAND_4(POLYOP_EXPAND_4(__VA_ARGS__))))
#define POLYOP_EXPAND_4(...) POLYOP_EXPAND_1(POLYOP_EXPAND_1(POLYOP_EXPAND_1(POLYOP_EXPAND_1(__VA_ARGS__))))
#define POLYOP_EXPAND_1(...) __VA_ARGS__
#define POLYOP_WITHOUT_PARENTHESES(TYPE) POLYOP_VANISH(POLYOP_MARK TYPE)
#define POLYOP_MARK(...) POLYOP_MARK __VA_ARGS__
#define POLYOP_VANISH(...) POLYOP_VANISH_NOW(__VA_ARGS__)
#define POLYOP_VANISH_NOW(...) POLYOP_NOTHING_##__VA_ARGS__
#define POLYOP_NOTHING_POLYOP_MARK

}  // namespace polyop
