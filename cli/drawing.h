// A model's graph as a picture, laid out by Graphviz.
#pragma once

#include <string>

#include "onnx/onnx.pb.h"

namespace polyop::cli {

/// Draws the graph: a box for each node, custom ones coloured by who provides them; attributes, inputs and types are
/// tooltips. Constants and initializers are no boxes: the nodes that read them tell them in their tooltips, and so do
/// nodes with subgraphs. Writes SVG, or an HTML page with a field to find nodes. Throws Failure: Graphviz's `dot` is
/// missing or fails (kFailed), the file cannot be written (kBadFile).
void DrawSvg(const onnx::ModelProto& model, const std::string& title, const std::string& path);
void DrawHtml(const onnx::ModelProto& model, const std::string& title, const std::string& path);

}  // namespace polyop::cli
