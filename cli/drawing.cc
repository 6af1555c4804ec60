// SPDX-License-Identifier: Apache-2.0
#include "cli/drawing.h"

#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "cli/base/catalogue.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/operators.h"
#include "cli/base/process.h"
#include "cli/base/text.h"

namespace polyop::cli {
namespace {

struct Style {
  const char* fill;
  const char* text;
  const char* label;
};
constexpr Style kStandard{"#f3f4f6", "#111827", "ONNX"};
constexpr Style kPolyop{"#1d4ed8", "#ffffff", "polyop"};
constexpr Style kRuntime{"#7c3aed", "#ffffff", "ONNX Runtime"};
constexpr Style kFunction{"#0f766e", "#ffffff", "function of the model"};
constexpr Style kNobody{"#b91c1c", "#ffffff", "not provided"};
constexpr Style kTensor{"#fef3c7", "#111827", "input or output"};

const Style& StyleOf(const onnx::ModelProto& model, const onnx::NodeProto& node) {
  if (IsStandard(node)) return kStandard;
  if (FindOperator(node.domain(), node.op_type()) != nullptr) return kPolyop;
  if (IsLocalFunction(model, node)) return kFunction;
  return IsRuntimeDomain(node.domain()) ? kRuntime : kNobody;
}

// Returns the length of the UTF-8 character at `i`, or 0 if there is none.
size_t CharacterLength(const std::string& text, size_t i) {
  const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U; };
  const unsigned first = byte(i);
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  for (size_t k = 1; k < length; ++k) {
    if (byte(i + k) >> 6 != 2) return 0;
  }
  return length;
}

// Returns a string literal of Graphviz's language. Bytes that are not text become '?'.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    const char c = text[i];
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '"' || c == '\\') {
      quoted += std::string("\\") + c;
    } else if (c == '&') {
      quoted += "&amp;";
    } else if (length == 0 || (length == 1 && static_cast<unsigned char>(c) < 0x20)) {
      quoted += '?';
    } else {
      quoted += text.substr(i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  return quoted + "\"";
}

std::string Shortened(const std::string& text, size_t max_length) {
  return text.size() <= max_length ? text
                                   : text.substr(0, max_length / 2) + "…" + text.substr(text.size() - max_length / 2);
}

// Returns the anchor of a function in an HTML page. Keeps only letters and digits, because names are untrusted.
std::string AnchorOf(const std::string& domain, const std::string& name) {
  std::string anchor = "function";
  for (const char c : "-" + domain + "-" + name) anchor += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return anchor;
}

// Writes a graph in Graphviz's language.
class Drawing {
 public:
  // `graph` is the model's graph or that of a function. With `links`, nodes link to their functions.
  Drawing(const onnx::ModelProto& model, const onnx::GraphProto& graph, bool links)
      : model_(model), graph_(graph), links_(links) {
    for (const auto& tensor : graph_.initializer()) constants_[tensor.name()] = TypeText(tensor);
    for (const auto& node : graph_.node()) {
      if (node.op_type() != "Constant" || !IsStandard(node) || node.output().empty()) continue;
      constants_[node.output(0)] = node.attribute().empty() ? "" : AttributeText(node.attribute(0));
    }
    for (const auto* infos : {&graph_.input(), &graph_.output(), &graph_.value_info()}) {
      for (const auto& info : *infos) types_[info.name()] = TypeText(info.type());
    }
  }

  std::string Text(const std::string& title) {
    Line("digraph {");
    Line("graph [rankdir=TB, nodesep=0.25, ranksep=0.35, fontname=\"Helvetica\", fontsize=14, labelloc=t, label=" +
         Quoted(title) + ", tooltip=" + Quoted(title) + "]");
    Line(
        "node [shape=box, style=\"rounded,filled\", penwidth=0, fontname=\"Helvetica\", fontsize=11, height=0.3, "
        "margin=\"0.12,0.05\"]");
    Line("edge [color=\"#6b7280\", arrowsize=0.6, penwidth=0.8]");
    for (const auto& input : graph_.input()) {
      if (!constants_.contains(input.name())) AddTensor(input, producer_[input.name()] = NewId());
    }
    std::vector<std::string> ids;
    for (const auto& node : graph_.node()) {
      ids.push_back(NewId());
      for (const std::string& output : node.output()) {
        if (!output.empty() && !constants_.contains(output)) producer_[output] = ids.back();
      }
    }
    for (int i = 0; i < graph_.node_size(); ++i) {
      const onnx::NodeProto& node = graph_.node(i);
      if (!node.output().empty() && constants_.contains(node.output(0))) continue;
      AddNode(node, ids[static_cast<size_t>(i)]);
    }
    for (const auto& output : graph_.output()) {
      const std::string id = NewId();
      AddTensor(output, id);
      AddEdge(output.name(), id);
    }
    Line("}");
    return text_;
  }

 private:
  void Line(const std::string& line) { text_ += line + "\n"; }
  std::string NewId() { return "n" + std::to_string(next_id_++); }

  void AddBox(const std::string& id, const Style& style, const std::string& label, const std::string& tooltip,
              const std::string& link = "") {
    Line(id + " [fillcolor=\"" + style.fill + "\", fontcolor=\"" + style.text + "\", label=" + Quoted(label) +
         ", tooltip=" + Quoted(tooltip) + (link.empty() ? "" : ", URL=" + Quoted("#" + link)) + "]");
  }

  void AddTensor(const onnx::ValueInfoProto& info, const std::string& id) {
    AddBox(id, kTensor, Shortened(info.name(), 40), info.name() + ": " + TypeText(info.type()));
  }

  void AddNode(const onnx::NodeProto& node, const std::string& id) {
    const Style& style = StyleOf(model_, node);
    const std::string type = IsStandard(node) ? node.op_type() : TypeOf(node);
    std::string tooltip = type + (node.name().empty() ? "" : "  " + node.name()) + "\n" + style.label;
    for (const auto& attribute : node.attribute()) {
      tooltip += "\n" + attribute.name() + " = " + Shortened(AttributeText(attribute), 120);
    }
    for (const std::string& input : node.input()) {
      if (!input.empty()) tooltip += "\nin " + Described(input);
    }
    for (const std::string& output : node.output()) {
      if (!output.empty()) tooltip += "\nout " + Described(output);
    }
    const bool function = !IsStandard(node) && IsLocalFunction(model_, node);
    if (function) tooltip += "\nhas a function of the model";
    AddBox(id, style, Shortened(type, 60), tooltip, links_ && function ? AnchorOf(node.domain(), node.op_type()) : "");
    for (const std::string& input : std::set<std::string>(node.input().begin(), node.input().end())) {
      AddEdge(input, id);
    }
  }

  void AddEdge(const std::string& tensor, const std::string& to) {
    const auto from = producer_.find(tensor);
    if (from == producer_.end()) return;
    Line(from->second + " -> " + to + " [tooltip=" + Quoted(Described(tensor)) + "]");
  }

  std::string Described(const std::string& tensor) const {
    const auto constant = constants_.find(tensor), type = types_.find(tensor);
    if (constant != constants_.end()) return tensor + ": constant " + Shortened(constant->second, 120);
    return type == types_.end() ? tensor : tensor + ": " + type->second;
  }

  const onnx::ModelProto& model_;
  const onnx::GraphProto& graph_;
  const bool links_;
  std::map<std::string, std::string> constants_, types_, producer_;  // by tensor
  int next_id_ = 0;
  std::string text_;
};

// Returns a function as a graph.
onnx::GraphProto GraphOf(const onnx::FunctionProto& function) {
  onnx::GraphProto graph;
  *graph.mutable_node() = function.node();
  for (const std::string& input : function.input()) graph.add_input()->set_name(input);
  for (const std::string& output : function.output()) graph.add_output()->set_name(output);
  return graph;
}

std::string SvgOf(const onnx::ModelProto& model, const onnx::GraphProto& graph, const std::string& title, bool links) {
  const TemporaryFolder folder;
  const std::string dot = Drawing(model, graph, links).Text(title);
  WriteFile(folder.File("graph.dot"), dot.data(), dot.size());
  RunProgram({"dot", "-Tsvg", "-o", folder.File("graph.svg"), folder.File("graph.dot")}, "Graphviz's message is above",
             "install Graphviz: its package is called graphviz");
  const std::vector<uint8_t> svg = ReadFile(folder.File("graph.svg"));
  return {svg.begin(), svg.end()};
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return escaped;
}

constexpr const char* kPageStyle = R"(
body { margin: 0; font: 14px Helvetica, Arial, sans-serif; color: #111827 }
header { position: sticky; top: 0; left: 0; padding: 8px 16px; background: #ffffffee; border-bottom: 1px solid #d1d5db }
header b { margin-right: 16px }
header span { margin-right: 12px; padding: 2px 8px; border-radius: 6px }
input { padding: 3px 8px; border: 1px solid #9ca3af; border-radius: 6px }
svg { display: block; margin: 16px auto }
details { margin: 8px 16px }
.found path { stroke: #f59e0b; stroke-width: 4 }
)";

// Opens the function that a node links to. Marks the nodes whose label or tooltip contains the words of the search
// field, and scrolls to the next one on Enter.
constexpr const char* kPageScript = R"(
const open = () => {
  const function_ = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (function_) function_.open = true;
};
addEventListener('hashchange', open);
open();
const field = document.querySelector('input');
let found = [], next = 0;
field.addEventListener('input', () => {
  const words = field.value.toLowerCase();
  found = [...document.querySelectorAll('.node')].filter(node => {
    const link = node.querySelector('a');
    const text = node.textContent + (link ? link.getAttribute('xlink:title') : '');
    const matches = words !== '' && text.toLowerCase().includes(words);
    node.classList.toggle('found', matches);
    return matches;
  });
  next = 0;
});
field.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || found.length === 0) return;
  found[next++ % found.length].scrollIntoView({ block: 'center', inline: 'center' });
});
)";

}  // namespace

void DrawSvg(const onnx::ModelProto& model, const std::string& title, const std::string& path) {
  const std::string svg = SvgOf(model, model.graph(), title, false);
  WriteFile(path, svg.data(), svg.size());
}

void DrawHtml(const onnx::ModelProto& model, const std::string& title, const std::string& path) {
  const std::string svg = SvgOf(model, model.graph(), "", true);
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" + Escaped(title) +
                     "</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n<header><b>" + Escaped(title) +
                     "</b>";
  for (const Style& style : {kStandard, kPolyop, kRuntime, kFunction, kNobody, kTensor}) {
    page += std::string("<span style=\"background: ") + style.fill + "; color: " + style.text + "\">" + style.label +
            "</span>";
  }
  page += "<input placeholder=\"find, then Enter\" aria-label=\"find\"></header>\n" + svg.substr(svg.find("<svg"));
  for (const onnx::FunctionProto& function : model.functions()) {
    const std::string body = SvgOf(model, GraphOf(function), "", true);
    page += "<details id=\"" + AnchorOf(function.domain(), function.name()) + "\"><summary>" +
            Escaped(function.domain() + "::" + function.name()) + ", a function of " +
            std::to_string(function.node_size()) + " nodes</summary>\n" + body.substr(body.find("<svg")) +
            "</details>\n";
  }
  page += std::string("<script>") + +kPageScript + "</script>\n</body>\n</html>\n";
  WriteFile(path, page.data(), page.size());
}

}  // namespace polyop::cli
