// SPDX-License-Identifier: Apache-2.0
// Reads a node's attributes from ONNX Runtime, when a kernel is created and in shape inference.
#pragma once

#include <memory>

#include "adapters/onnxruntime/ort_api.h"
#include "core/op.h"

namespace polyop::onnxruntime {

class KernelAttributes : public AttrSource {
 public:
  explicit KernelAttributes(const OrtKernelInfo* info) : info_(info) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const OrtKernelInfo* info_;
};

/// Returns false if the attribute has another type than AttrValue supports.
bool ReadAttribute(const OrtOpAttr* attribute, AttrValue* value);

struct ReleaseAttribute {
  void operator()(OrtOpAttr* attribute) const { Api().ReleaseOpAttr(attribute); }
};
using Attribute = std::unique_ptr<OrtOpAttr, ReleaseAttribute>;

/// Creates an attribute of the runtime.
Status MakeAttribute(const char* name, const AttrValue& value, Attribute* attribute);

class InferenceAttributes : public AttrSource {
 public:
  explicit InferenceAttributes(const OrtShapeInferContext* context) : context_(context) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const OrtShapeInferContext* context_;
};

}  // namespace polyop::onnxruntime
