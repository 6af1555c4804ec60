// SPDX-License-Identifier: Apache-2.0
// Reads attributes of nodes in ONNX files and in OpenVINO IR files, where each attribute is a text.
#pragma once

#include <map>
#include <openvino/frontend/node_context.hpp>
#include <string>

#include "core/op.h"

namespace polyop::openvino {

/// The attributes of a node in an ONNX file.
class OnnxAttributes : public AttrSource {
 public:
  explicit OnnxAttributes(const ov::frontend::NodeContext& context) : context_(context) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const ov::frontend::NodeContext& context_;
};

/// The attributes of a node in an IR file, under the operator's names.
class TextAttributes : public AttrSource {
 public:
  TextAttributes(const Op& op, const std::map<std::string, std::string>& texts) : op_(op), texts_(texts) {}
  bool Get(const char* name, AttrValue* value) override;

 private:
  const Op& op_;
  const std::map<std::string, std::string>& texts_;
};

/// Returns a text that TextAttributes reads as the same value. IR files support neither infinity nor exact real
/// numbers.
std::string TextOf(const AttrValue& value);

}  // namespace polyop::openvino
