// SPDX-License-Identifier: Apache-2.0
// Attributes as TensorRT plugin fields, from the ONNX parser and in engines.
#pragma once

#include <NvInferRuntime.h>

#include <deque>
#include <string>
#include <vector>

#include "core/op.h"

namespace polyop::tensorrt {

/// Reads fields of the ONNX parser or an engine as attributes of a node.
class FieldAttributes : public AttrSource {
 public:
  explicit FieldAttributes(const nvinfer1::PluginFieldCollection* fields) : fields_(fields) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const nvinfer1::PluginFieldCollection* fields_;
};

/// Fields that own their data.
class Fields {
 public:
  Fields() = default;
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  void Add(const std::string& name, const AttrValue& value);
  /// Adds a field without a value, which declares its name to the parser. Does nothing if the name exists.
  void Add(const std::string& name, AttrType type);
  const nvinfer1::PluginFieldCollection* collection();

 private:
  struct Owned {
    std::string name;
    AttrValue value;
    std::vector<float> floats;
  };
  std::deque<Owned> owned_;
  std::vector<nvinfer1::PluginField> fields_;
  nvinfer1::PluginFieldCollection collection_{};
};

}  // namespace polyop::tensorrt
