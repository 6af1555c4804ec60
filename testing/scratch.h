// SPDX-License-Identifier: Apache-2.0
// Measures the scratch memory of CPU kernels.
#pragma once

#include <algorithm>
#include <new>
#include <vector>

#include "core/call.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Counts the scratch memory that one thread allocates.
class CountedScratch {
 public:
  CountedScratch() {
    backend_.self = this;
    backend_.parallel = [](void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
      for (int64_t task = 0; task < tasks; ++task) body(argument, task);
    };
    backend_.allocate = [](void* self, size_t bytes) -> void* {
      void* const memory = operator new(bytes + kHeader, std::align_val_t{kHeader}, std::nothrow);
      if (memory == nullptr) return nullptr;
      *static_cast<size_t*>(memory) = bytes;
      auto* const counted = static_cast<CountedScratch*>(self);
      counted->now_ += bytes;
      counted->peak_ = std::max(counted->peak_, counted->now_);
      return static_cast<char*>(memory) + kHeader;
    };
    backend_.release = [](void* self, void* data) {
      void* const memory = static_cast<char*>(data) - kHeader;
      static_cast<CountedScratch*>(self)->now_ -= *static_cast<size_t*>(memory);
      operator delete(memory, std::align_val_t{kHeader});
    };
  }
  CountedScratch(const CountedScratch&) = delete;
  CountedScratch& operator=(const CountedScratch&) = delete;

  const ContextBackend& backend() const { return backend_; }
  /// Returns the largest number of bytes in use at a time.
  size_t peak() const { return peak_; }

 private:
  static constexpr size_t kHeader = 64;  // keeps the alignment
  ContextBackend backend_;
  size_t now_ = 0, peak_ = 0;
};

/// Runs the CPU kernel with one thread and returns the most bytes of scratch memory that it holds at a time, or 0 after
/// an error, which fails the test.
template <class P>
size_t PeakScratch(const P& params, const std::vector<HostTensor>& inputs) {
  class Outputs : public OutputSource {
   public:
    bool Requested(int) override { return true; }
    Status Allocate(int, DType dtype, const Shape& shape, void** data) override {
      outputs_.push_back(HostTensor(dtype, shape));
      *data = outputs_.back().template data<char>();
      return Status::Ok();
    }

   private:
    std::vector<HostTensor> outputs_;
  } outputs;
  std::vector<AnyTensor> views;
  for (const HostTensor& t : inputs) views.push_back(t.view());
  const CountedScratch memory;
  const Context context(memory.backend());
  const Status status = Call(*FindOp(P::kName), Device::kCpu, &params, views, outputs, &context);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() ? memory.peak() : 0;
}

/// Expects that a thread needs no more scratch memory for many items than for two.
template <class P, class InputsOf>
void ExpectScratchOfOneThread(const P& params, const InputsOf& inputs_of) {
  EXPECT_EQ(PeakScratch(params, inputs_of(100)), PeakScratch(params, inputs_of(2)));
}

}  // namespace polyop::testing
