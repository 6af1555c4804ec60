// SPDX-License-Identifier: Apache-2.0
#include "testing/alignment.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "core/call.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/thread_pool.h"

namespace polyop::testing {
namespace {

// Returns `bytes`, rounded up to a multiple of the element size.
int64_t WholeElements(int64_t bytes, DType dtype) {
  const int64_t size = static_cast<int64_t>(SizeOf(dtype));
  return (bytes + size - 1) / size * size;
}

// Memory that begins `off` bytes after the start of a cache line, with a margin on both sides.
class PlacedBytes {
 public:
  PlacedBytes(int64_t bytes, int64_t off)
      : memory_(new (std::align_val_t{kLine}) unsigned char[static_cast<size_t>(bytes) + 3 * kLine]),
        bytes_(static_cast<size_t>(bytes)),
        first_(kLine + static_cast<size_t>(off)) {
    std::fill_n(memory_.get(), bytes_ + 3 * kLine, kMargin);
  }
  unsigned char* data() { return memory_.get() + first_; }
  // Returns true if nothing was written before or after the memory.
  bool IsMarginIntact() const {
    const auto is_margin = [](unsigned char byte) { return byte == kMargin; };
    return std::all_of(memory_.get(), memory_.get() + first_, is_margin) &&
           std::all_of(memory_.get() + first_ + bytes_, memory_.get() + bytes_ + 3 * kLine, is_margin);
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr unsigned char kMargin = 0xA5;
  struct Free {
    void operator()(unsigned char* memory) const { operator delete[](memory, std::align_val_t{kLine}); }
  };
  std::unique_ptr<unsigned char[], Free> memory_;
  size_t bytes_, first_;
};

// Outputs that begin `off` bytes, rounded up to whole elements, after the start of a cache line.
class PlacedOutputs : public OutputSource {
 public:
  explicit PlacedOutputs(int64_t off) : off_(off) {}
  bool Requested(int) override { return true; }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const int64_t bytes = shape.NumElements().value() * static_cast<int64_t>(SizeOf(dtype));
    if (outputs.size() <= static_cast<size_t>(index)) outputs.resize(static_cast<size_t>(index) + 1);
    sizes.resize(outputs.size());
    sizes[static_cast<size_t>(index)] = static_cast<size_t>(bytes);
    outputs[static_cast<size_t>(index)] = std::make_unique<PlacedBytes>(bytes, WholeElements(off_, dtype));
    *data = outputs[static_cast<size_t>(index)]->data();
    return Status::Ok();
  }

  std::vector<std::unique_ptr<PlacedBytes>> outputs;
  std::vector<size_t> sizes;

 private:
  int64_t off_;
};

}  // namespace

void ExpectSameAtAnyAlignmentOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs) {
  for (const std::string& isa : AvailableIsas()) {
    ASSERT_TRUE(ForceIsa(isa).ok());
    std::unique_ptr<PlacedOutputs> first;
    for (const int64_t off : {0, 4, 16, 60}) {
      const std::string what = Concat(op.name, " on ", isa, ", ", off, " bytes offset");
      std::vector<std::unique_ptr<PlacedBytes>> placed;
      std::vector<AnyTensor> views;
      for (const HostTensor& tensor : inputs) {
        AnyTensor view = tensor.view();
        const int64_t bytes = tensor.present() ? tensor.size() * static_cast<int64_t>(SizeOf(view.dtype)) : 0;
        placed.push_back(std::make_unique<PlacedBytes>(bytes, WholeElements(off, view.dtype)));
        if (bytes > 0) std::memcpy(placed.back()->data(), view.data, static_cast<size_t>(bytes));
        view.data = placed.back()->data();
        views.push_back(view);
      }
      ThreadPool pool(2);
      const Context context(pool.backend());
      auto got = std::make_unique<PlacedOutputs>(off);
      const Status status = Call(op, Device::kCpu, params, views, *got, &context);
      ASSERT_TRUE(status.ok()) << what << ": " << status.message();
      if (off == 0) first = std::move(got);
      const PlacedOutputs& now = off == 0 ? *first : *got;
      for (size_t o = 0; o < now.outputs.size(); ++o) {
        EXPECT_TRUE(now.outputs[o]->IsMarginIntact()) << what << ": wrote outside of output " << o;
        EXPECT_EQ(std::memcmp(now.outputs[o]->data(), first->outputs[o]->data(), now.sizes[o]), 0)
            << what << ": output " << o << " differs";
      }
    }
  }
  ASSERT_TRUE(ForceIsa("").ok());
}

}  // namespace polyop::testing
