// SPDX-License-Identifier: Apache-2.0
// What kernels of ONNX Runtime's sessions share: names of nodes and outputs, inputs, threads and memory of a call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/onnxruntime/ort_api.h"
#include "core/context.h"
#include "core/standard_node.h"

namespace polyop::onnxruntime {

/// Sets whether nodes of sessions that this thread creates run the reference kernels or the fast ones. The default,
/// nullopt, is the reference kernels if the environment variable POLYOP_KERNELS is "reference".
void UseReferenceKernels(std::optional<bool> use);

/// Returns whether a kernel that this thread creates now is a reference kernel.
bool UsesReferenceKernels();

/// Returns the node's name, or "".
std::string NodeNameOf(const OrtKernelInfo* info);
/// A node omits an optional output by an empty name, or by having fewer outputs.
bool OutputIsNamed(const OrtKernelInfo* info, size_t index);

/// Returns an input of a call; an absent tensor if the node omits it.
Status ReadInput(const OrtKernelContext* context, size_t index, AnyTensor* tensor);
/// Returns all inputs of a call; those that the node omits are absent.
Status ReadInputs(const OrtKernelContext* context, std::vector<AnyTensor>* inputs);

/// The outputs of a call, as a kernel allocates them. Output o is the node's output `indices[o]`; -1 if the node omits
/// it.
class CallOutputs : public OutputSource {
 public:
  CallOutputs(OrtKernelContext* context, const std::vector<int>& indices) : context_(context), indices_(indices) {}
  bool Requested(int index) override;
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override;

 private:
  OrtKernelContext* context_;
  const std::vector<int>& indices_;
};

/// The backend of a CPU kernel's context: the session's thread pool and arena.
class SessionBackend {
 public:
  explicit SessionBackend(const OrtKernelContext* context);
  ~SessionBackend();
  SessionBackend(const SessionBackend&) = delete;
  SessionBackend& operator=(const SessionBackend&) = delete;

  const ContextBackend& backend() const { return backend_; }

 private:
  static void Parallel(void* self, int64_t tasks, void (*body)(void*, int64_t), void* argument);
  static void* Allocate(void* self, size_t bytes);
  static void Release(void* self, void* memory);
  Status FindAllocator();

  const OrtKernelContext* context_;
  OrtMemoryInfo* memory_info_ = nullptr;
  OrtAllocator* allocator_ = nullptr;
  ContextBackend backend_;
};

/// Runs the kernel of a standard node or of a pattern in a call; `reference` selects the reference kernel.
/// `outputs` are the indices of CallOutputs.
Status RunInSession(const StandardKernel& kernel, bool reference, OrtKernelContext* context,
                    const std::vector<AnyTensor>& inputs, const std::vector<int>& outputs);

}  // namespace polyop::onnxruntime
