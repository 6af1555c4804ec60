// SPDX-License-Identifier: Apache-2.0
// Highway, and the registration of kernels that are compiled once per instruction set.
//
// A CPU kernel file looks like this:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "ops/my_op/my_op_cpu.cc"
//   #include "hwy/foreach_target.h"  // IWYU pragma: keep
//   #include "kernels/cpu/simd.h"
//   #include "ops/my_op/my_op.h"
//
//   HWY_BEFORE_NAMESPACE();
//   namespace polyop {
//   namespace HWY_NAMESPACE {
//   namespace {
//   template <class T> Status MyOpCpu(const MyOp&, const Context&, …) { … }
//   }  // namespace
//   }  // namespace HWY_NAMESPACE
//   }  // namespace polyop
//   HWY_AFTER_NAMESPACE();
//
//   #if HWY_ONCE
//   namespace polyop {
//   POLYOP_CPU_KERNELS(MyOp, MyOpCpu, float, Half, BFloat16);
//   }  // namespace polyop
//   #endif
//
// Lambdas that call SIMD functions need HWY_ATTR: `[&](int64_t begin, int64_t end) HWY_ATTR { … }`.

// Outside of the guard because Highway redefines its macros for each target.
#include "hwy/highway.h"

#ifndef POLYOP_KERNELS_CPU_SIMD_H_
#define POLYOP_KERNELS_CPU_SIMD_H_

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/operator.h"

namespace polyop {

/// Returns the names of the instruction sets that are compiled in and that this processor supports, best first:
/// "avx3_dl", "avx3", "avx2", "sse4", …
std::span<const std::string> AvailableIsas();
/// Returns the instruction set that kernels use.
std::string CurrentIsa();
/// Forces an instruction set; "" restores the best one. Returns an error for an unknown name. The environment variable
/// POLYOP_ISA has the same effect when the library is loaded; an unknown name there is reported on stderr and ignored.
/// Requires: no kernel is running.
Status ForceIsa(std::string_view name);

/// Registers FUNCTION (a function, or a template with one argument, inside HWY_NAMESPACE) as a CPU
/// kernel; calls go to the best instruction set.
#define POLYOP_CPU_KERNEL(OP, FUNCTION) POLYOP_CPU_KERNEL_AS(OP, OP##FUNCTION, FUNCTION)
#define POLYOP_CPU_KERNEL_AS(OP, ID, FUNCTION)                                                 \
  HWY_EXPORT_T(ID##Table, FUNCTION);                                                           \
  [[maybe_unused]] static const bool ID##_registered =                                         \
      ::polyop::operator_internal::Register<OP, ::polyop::Device::kCpu>(                       \
          [](auto&&... arguments) { return HWY_DYNAMIC_DISPATCH_T(ID##Table)(arguments...); }, \
          &HWY_STATIC_DISPATCH(FUNCTION))

/// Registers a kernel template, which has one template parameter, for several types.
#define POLYOP_CPU_KERNELS(OP, FUNCTION, ...) POLYOP_FOR_EACH_TYPE(POLYOP_CPU_KERNEL_AS, OP, FUNCTION, __VA_ARGS__)

// Code that several operators share is compiled once, in a .cc file of their room. Its header declares a template
// that is instantiated for every floating type; the .cc file implements it in a template inside HWY_NAMESPACE, followed
// by
//
//   #if HWY_ONCE
//   namespace polyop {
//   POLYOP_SIMD_TABLES(Pool, PoolHere);
//   template <class T>
//   Status PoolRois(const Context& context, …) {
//     return POLYOP_SIMD(Pool, T)(context, …);
//   }
//   POLYOP_FOR_FLOATS(PoolRois);
//   }  // namespace polyop
//   #endif

/// Defines tables of FUNCTION on all instruction sets, for f32, f16 and bf16.
#define POLYOP_SIMD_TABLES(ID, FUNCTION)       \
  HWY_EXPORT_T(ID##F32Table, FUNCTION<float>); \
  HWY_EXPORT_T(ID##F16Table, FUNCTION<Half>);  \
  HWY_EXPORT_T(ID##BF16Table, FUNCTION<BFloat16>)

/// Returns the function for T on the best instruction set.
#define POLYOP_SIMD(ID, T)                          \
  ([] {                                             \
    if constexpr (std::is_same_v<T, float>) {       \
      return HWY_DYNAMIC_DISPATCH_T(ID##F32Table);  \
    } else if constexpr (std::is_same_v<T, Half>) { \
      return HWY_DYNAMIC_DISPATCH_T(ID##F16Table);  \
    } else {                                        \
      return HWY_DYNAMIC_DISPATCH_T(ID##BF16Table); \
    }                                               \
  }())

/// Instantiates a function template, which headers only declare, for the floating types.
#define POLYOP_FOR_FLOATS(FUNCTION)                   \
  template decltype(FUNCTION<float>) FUNCTION<float>; \
  template decltype(FUNCTION<Half>) FUNCTION<Half>;   \
  template decltype(FUNCTION<BFloat16>) FUNCTION<BFloat16>

}  // namespace polyop

#endif  // POLYOP_KERNELS_CPU_SIMD_H_

// Per-target helpers: included once per instruction set.
#if defined(POLYOP_KERNELS_CPU_SIMD_TARGET_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_SIMD_TARGET_H_
#undef POLYOP_KERNELS_CPU_SIMD_TARGET_H_
#else
#define POLYOP_KERNELS_CPU_SIMD_TARGET_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway emulates fp16 if the processor cannot convert it, but the emulation loses NaN and infinity.
#undef POLYOP_NO_F16C
#define POLYOP_NO_F16C (HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4)

/// Loads floats from unaligned memory of any floating type.
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const float* p) {
  return hn::LoadU(df, p);
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const Half* p) {
#if POLYOP_NO_F16C
  HWY_ALIGN float buffer[hn::MaxLanes(df)];
  for (size_t i = 0; i < hn::Lanes(df); ++i) buffer[i] = ToFloat(p[i]);
  return hn::Load(df, buffer);
#else
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
#endif
}
template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const BFloat16* p) {
  const hn::Rebind<hwy::bfloat16_t, DF> db;
  return hn::PromoteTo(df, hn::LoadU(db, reinterpret_cast<const hwy::bfloat16_t*>(p)));
}

/// Loads the first `count` lanes; the others are 0. Does not read beyond them.
template <class DF, class T>
HWY_INLINE hn::Vec<DF> LoadFloatN(DF df, const T* p, size_t count) {
  if constexpr (sizeof(T) == 4) {
    return hn::LoadN(df, p, count);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(df)] = {};
    for (size_t i = 0; i < count; ++i) buffer[i] = p[i];
    return LoadFloat(df, buffer);
  }
}

/// Rounds to nearest even and stores all lanes to unaligned memory.
template <class DF>
HWY_INLINE void StoreFloat(hn::Vec<DF> v, DF df, float* p) {
  hn::StoreU(v, df, p);
}
template <class DF>
HWY_INLINE void StoreFloat(hn::Vec<DF> v, DF, Half* p) {
#if POLYOP_NO_F16C
  HWY_ALIGN float buffer[hn::MaxLanes(DF())];
  hn::Store(v, DF(), buffer);
  for (size_t i = 0; i < hn::Lanes(DF()); ++i) p[i] = FromFloat<Half>(buffer[i]);
#else
  const hn::Rebind<hwy::float16_t, DF> dh;
  hn::StoreU(hn::DemoteTo(dh, v), dh, reinterpret_cast<hwy::float16_t*>(p));
#endif
}
template <class DF>
HWY_INLINE void StoreFloat(hn::Vec<DF> v, DF, BFloat16* p) {
  const hn::Rebind<hwy::bfloat16_t, DF> db;
  hn::StoreU(hn::DemoteTo(db, v), db, reinterpret_cast<hwy::bfloat16_t*>(p));
}

/// Stores the first `count` lanes. Does not write beyond them.
template <class DF, class T>
HWY_INLINE void StoreFloatN(hn::Vec<DF> v, DF df, T* p, size_t count) {
  if constexpr (sizeof(T) == 4) {
    hn::StoreN(v, df, p, count);
  } else {
    HWY_ALIGN T buffer[hn::MaxLanes(df)];
    StoreFloat(v, df, buffer);
    for (size_t i = 0; i < count; ++i) p[i] = buffer[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif  // per-target part
