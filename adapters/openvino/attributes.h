// Attributes of nodes: of ONNX files, and of OpenVINO's own (IR), where each is a text.
#pragma once

#include <map>
#include <openvino/frontend/node_context.hpp>
#include <string>

#include "core/op.h"

namespace polyop::openvino {

/// Of a node of an ONNX file.
class OnnxAttributes : public AttrSource {
 public:
  explicit OnnxAttributes(const ov::frontend::NodeContext& context) : context_(context) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const ov::frontend::NodeContext& context_;
};

/// Of a node of an IR file, under the operator's own names.
class TextAttributes : public AttrSource {
 public:
  TextAttributes(const Op& op, const std::map<std::string, std::string>& texts) : op_(op), texts_(texts) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const Op& op_;
  const std::map<std::string, std::string>& texts_;
};

/// A text from which TextAttributes makes the same value; IR files cannot hold infinity, nor real numbers exactly.
std::string TextOf(const AttrValue& value);

}  // namespace polyop::openvino
