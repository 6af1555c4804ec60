// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/library_product.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif
#if defined(__CUDACC__) && !defined(_WIN32)
#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>
#endif

namespace polyop {

#ifndef __CUDACC__  // emulation

namespace {

template <class T, class C>
void Multiply(const LibraryProduct& p) {
  for (int64_t i = 0; i < p.count; ++i) {
    const T* const a = static_cast<const T*>(p.a.data) + i * p.a.matrix_step;
    const T* const b = static_cast<const T*>(p.b.data) + i * p.b.matrix_step;
    C* const c = static_cast<C*>(p.c) + i * p.c_matrix_step;
    const int64_t down = p.a_transposed ? 1 : p.a.row_step, along = p.a_transposed ? p.a.row_step : 1;
    for (int64_t row = 0; row < p.rows; ++row) {
      for (int64_t column = 0; column < p.columns; ++column) {
        C& to = c[row * p.c_row_step + column];
        float sum = p.adds ? ToFloat(to) : 0;
        for (int64_t k = 0; k < p.depth; ++k) {
          sum += ToFloat(a[row * down + k * along]) * ToFloat(b[k * p.b.row_step + column]);
        }
        to = FromFloat<C>(sum);
      }
    }
  }
}

}  // namespace

bool LibraryProduct::Available() { return cuda_emulation::library_products_left >= 0; }

bool LibraryProduct::Launch(const CudaContext& cuda, void*) const {
  if (!cuda.Check().ok()) return false;
  if (cuda.measuring()) return true;
  if (cuda_emulation::library_products_left <= 0) return false;
  --cuda_emulation::library_products_left;
  const bool to_float = c_type == Type::kF32;
  const auto multiply = type == Type::kF32   ? Multiply<float, float>
                        : type == Type::kF16 ? (to_float ? Multiply<Half, float> : Multiply<Half, Half>)
                                             : (to_float ? Multiply<BFloat16, float> : Multiply<BFloat16, BFloat16>);
  multiply(*this);
  return true;
}

#elif defined(_WIN32)

bool LibraryProduct::Available() { return false; }
bool LibraryProduct::Launch(const CudaContext&, void*) const { return false; }

#else

namespace {

// The part of cuBLASLt's interface that is used here. Versions 12 and 13 have the same.
namespace lt {

using Handle = void*;
using Descriptor = void*;
using Layout = void*;
using Preference = void*;

enum : int { kSuccess = 0 };
enum DataType : int { kF32 = 0, kF16 = 2, kBF16 = 14 };
enum : int { kComputeF32 = 68 };
enum : int { kTransposeB = 4 };  // an attribute of a descriptor
enum : int32_t { kTransposed = 1 };
enum : int { kLayoutBatchCount = 5, kLayoutBatchOffset = 6 };
enum : int { kMaxWorkspace = 1, kReductions = 3, kAlignments = 5 };  // the alignments of a, b, c and d
enum : uint32_t { kReduceInComputeType = 2 };

struct Algorithm {
  uint64_t data[8];
};
struct Found {
  Algorithm algorithm;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

struct Library {
  int (*create)(Handle*);
  int (*create_descriptor)(Descriptor*, int compute, int scale_type);
  int (*destroy_descriptor)(Descriptor);
  int (*set_descriptor)(Descriptor, int attribute, const void*, size_t);
  int (*create_layout)(Layout*, int type, uint64_t rows, uint64_t columns, int64_t column_step);
  int (*destroy_layout)(Layout);
  int (*set_layout)(Layout, int attribute, const void*, size_t);
  int (*create_preference)(Preference*);
  int (*destroy_preference)(Preference);
  int (*set_preference)(Preference, int attribute, const void*, size_t);
  int (*find)(Handle, Descriptor, Layout a, Layout b, Layout c, Layout d, Preference, int count, Found*, int* found);
  int (*multiply)(Handle, Descriptor, const void* alpha, const void* a, Layout, const void* b, Layout, const void* beta,
                  const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace, size_t, cudaStream_t);

  static bool Find(Library* library) {
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
      void* const loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);  // never closed, so that it stays loaded
      if (loaded != nullptr && library->FindIn(loaded)) return true;
    }
    return false;
  }

 private:
  bool FindIn(void* loaded) {
    const auto find_function = [&](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)> >(dlsym(loaded, name));
      return *function != nullptr;
    };
    return find_function("cublasLtCreate", &create) && find_function("cublasLtMatmulDescCreate", &create_descriptor) &&
           find_function("cublasLtMatmulDescDestroy", &destroy_descriptor) &&
           find_function("cublasLtMatmulDescSetAttribute", &set_descriptor) &&
           find_function("cublasLtMatrixLayoutCreate", &create_layout) &&
           find_function("cublasLtMatrixLayoutDestroy", &destroy_layout) &&
           find_function("cublasLtMatrixLayoutSetAttribute", &set_layout) &&
           find_function("cublasLtMatmulPreferenceCreate", &create_preference) &&
           find_function("cublasLtMatmulPreferenceDestroy", &destroy_preference) &&
           find_function("cublasLtMatmulPreferenceSetAttribute", &set_preference) &&
           find_function("cublasLtMatmulAlgoGetHeuristic", &find) && find_function("cublasLtMatmul", &multiply);
  }
};

}  // namespace lt

// The library, or null. A process may load it after polyop's first call.
const lt::Library* TheLibrary() {
  static std::mutex mutex;
  static lt::Library library;
  static bool found = false;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!found) found = lt::Library::Find(&library);
  return found ? &library : nullptr;
}

// What a product depends on, apart from the addresses.
using Key = std::array<int64_t, 17>;

// cuBLASLt's matrices are in the order of columns. A matrix in the order of rows is its transpose there, so it computes
// transpose(c) = transpose(b) * transpose(a).
struct Plan {
  lt::Descriptor descriptor = nullptr;
  lt::Layout a = nullptr, b = nullptr, c = nullptr;
  lt::Found found = {};

  bool Make(const lt::Library& library, lt::Handle handle, const LibraryProduct& p, const uint32_t (&alignments)[3]) {
    using Type = LibraryProduct::Type;
    const auto layout = [&](lt::Layout* to, Type type, int64_t rows, int64_t columns, int64_t row_step,
                            int64_t matrix_step) {
      const auto count = static_cast<int32_t>(p.count);
      const int as = type == Type::kF32 ? lt::kF32 : type == Type::kF16 ? lt::kF16 : lt::kBF16;
      return library.create_layout(to, as, static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), row_step) ==
                 lt::kSuccess &&
             library.set_layout(*to, lt::kLayoutBatchCount, &count, sizeof count) == lt::kSuccess &&
             library.set_layout(*to, lt::kLayoutBatchOffset, &matrix_step, sizeof matrix_step) == lt::kSuccess;
    };
    if (library.create_descriptor(&descriptor, lt::kComputeF32, lt::kF32) != lt::kSuccess ||
        !layout(&a, p.type, p.a_transposed ? p.depth : p.rows, p.a_transposed ? p.rows : p.depth, p.a.row_step,
                p.a.matrix_step) ||
        !layout(&b, p.type, p.depth, p.columns, p.b.row_step, p.b.matrix_step) ||
        !layout(&c, p.c_type, p.rows, p.columns, p.c_row_step, p.c_matrix_step)) {
      return false;
    }
    const int32_t transposed = lt::kTransposed;
    if (p.a_transposed &&
        library.set_descriptor(descriptor, lt::kTransposeB, &transposed, sizeof transposed) != lt::kSuccess) {
      return false;
    }
    lt::Preference preference = nullptr;
    if (library.create_preference(&preference) != lt::kSuccess) return false;
    const auto set = [&](int attribute, const auto& value) {
      return library.set_preference(preference, attribute, &value, sizeof value) == lt::kSuccess;
    };
    const uint64_t workspace = LibraryProduct::kWorkspaceBytes;
    const uint32_t reductions = lt::kReduceInComputeType;
    int count = 0;
    const bool known = set(lt::kMaxWorkspace, workspace) && set(lt::kReductions, reductions) &&
                       set(lt::kAlignments, alignments[1]) && set(lt::kAlignments + 1, alignments[0]) &&
                       set(lt::kAlignments + 2, alignments[2]) && set(lt::kAlignments + 3, alignments[2]) &&
                       library.find(handle, descriptor, b, a, c, c, preference, 1, &found, &count) == lt::kSuccess &&
                       count == 1 && found.status == lt::kSuccess;
    library.destroy_preference(preference);
    return known;
  }
  void Destroy(const lt::Library& library) {
    for (lt::Layout layout : {a, b, c}) {
      if (layout != nullptr) library.destroy_layout(layout);
    }
    if (descriptor != nullptr) library.destroy_descriptor(descriptor);
    *this = Plan();
  }
};

// A handle and the plans of a device. They stay until the process ends.
struct DeviceProducts {
  lt::Handle handle = nullptr;
  std::map<Key, Plan> plans;
};

uint32_t AlignmentOf(const void* data) {
  constexpr uintptr_t kMax = 256;
  const uintptr_t at = reinterpret_cast<uintptr_t>(data) | kMax;
  return static_cast<uint32_t>(at & (~at + 1));
}

}  // namespace

bool LibraryProduct::Available() { return TheLibrary() != nullptr; }

bool LibraryProduct::Launch(const CudaContext& cuda, void* workspace) const {
  constexpr size_t kMaxPlans = 256;
  if (!cuda.Check().ok()) return false;
  if (cuda.measuring()) return true;
  for (int64_t extent : {count, rows, columns, depth}) {
    if (extent > INT32_MAX) return false;
  }
  const lt::Library* const library = TheLibrary();
  int device = 0;
  if (library == nullptr || cudaGetDevice(&device) != cudaSuccess) return false;
  const auto stream = static_cast<cudaStream_t>(cuda.stream());
  static std::mutex mutex;
  static auto* const devices = new std::map<int, DeviceProducts>;
  const std::lock_guard<std::mutex> lock(mutex);
  DeviceProducts& of = (*devices)[device];
  if (of.handle == nullptr) {
    // A handle allocates memory, which a capture forbids.
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess || capturing != cudaStreamCaptureStatusNone) {
      return false;
    }
    if (library->create(&of.handle) != lt::kSuccess) {
      of.handle = nullptr;
      return false;
    }
  }
  const uint32_t alignments[3] = {AlignmentOf(a.data), AlignmentOf(b.data), AlignmentOf(c)};
  const Key key{static_cast<int64_t>(type),
                static_cast<int64_t>(c_type),
                a_transposed,
                count,
                rows,
                columns,
                depth,
                a.row_step,
                a.matrix_step,
                b.row_step,
                b.matrix_step,
                c_row_step,
                c_matrix_step,
                adds,
                alignments[0],
                alignments[1],
                alignments[2]};
  auto at = of.plans.find(key);
  if (at == of.plans.end()) {
    if (of.plans.size() >= kMaxPlans) {
      for (auto& [_, plan] : of.plans) plan.Destroy(*library);
      of.plans.clear();
    }
    Plan plan;
    if (!plan.Make(*library, of.handle, *this, alignments)) plan.Destroy(*library);
    at = of.plans.emplace(key, plan).first;
  }
  const Plan& plan = at->second;
  if (plan.descriptor == nullptr) return false;  // is not supported
  const float one = 1, beta = adds ? 1 : 0;
  return library->multiply(of.handle, plan.descriptor, &one, b.data, plan.b, a.data, plan.a, &beta, c, plan.c, c,
                           plan.c, &plan.found.algorithm, workspace, kWorkspaceBytes, stream) == lt::kSuccess;
}

#endif

}  // namespace polyop
