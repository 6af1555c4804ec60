// Attributes as TensorRT hands them over and stores them in an engine.
#pragma once

#include <NvInferRuntime.h>

#include <deque>
#include <string>
#include <vector>

#include "core/op.h"

namespace polyop::tensorrt {

/// The fields that the ONNX parser or an engine gives, as attributes of a node.
class FieldAttributes : public AttrSource {
 public:
  explicit FieldAttributes(const nvinfer1::PluginFieldCollection* fields) : fields_(fields) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const nvinfer1::PluginFieldCollection* fields_;
};

/// Fields that own what they point to.
class Fields {
 public:
  Fields() = default;
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  void Add(const std::string& name, const AttrValue& value);
  /// A name alone, of which the parser wants to know that it exists. One that is there already stays as it is.
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
