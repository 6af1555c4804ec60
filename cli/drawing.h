// SPDX-License-Identifier: Apache-2.0
// Drawings of a model's graph, laid out by Graphviz.
#pragma once

#include <string>

#include "onnx/onnx.pb.h"

namespace polyop::cli {

/// Draws the graph with a box for each node. Colours show who provides custom nodes; tooltips show attributes, inputs
/// and types. Constants and initializers have no boxes, they are in the tooltips of the nodes that read them. Writes
/// SVG, or an HTML page with a search field. Throws Failure if Graphviz's `dot` is missing or fails (kFailed), or if
/// the file cannot be written (kBadFile).
void DrawSvg(const onnx::ModelProto& model, const std::string& title, const std::string& path);
void DrawHtml(const onnx::ModelProto& model, const std::string& title, const std::string& path);

}  // namespace polyop::cli
