// What a call gives before there is data: PyTorch's fake kernels ask.
#pragma once

#include <string>
#include <string_view>

namespace polyop::torch_adapter {

/// Checks a call as a real one is checked, and tells its outputs. In JSON, the request
///
///   {"operator": "nms", "cuda": false, "attributes": {"iou_threshold": 0.5},
///    "inputs": [{"name": "boxes", "type": "f32", "shape": [null, null]}, null]}
///
/// has an input for each tensor, null for one that was left out. Of its extents null is not known, a number is, and a
/// text is a symbol that messages show. Reals may be written as text: "inf". The answer is
///
///   {"outputs": [{"type": "i64", "shape": [["found", "K", ["extent", 0, 0]]]}],
///    "checks": [[["extent", 0, 0], ["extent", 1, 0]]]}
///
/// where shapes and checks, pairs that must be equal, are as adapters/torch/tree_domain.h writes them; or
/// {"error": "…"} with the text of a real call.
std::string AnswerShapes(std::string_view request);

}  // namespace polyop::torch_adapter

/// The same for callers of the library. The text lives until the thread's next call.
extern "C" const char* polyop_shapes(const char* request);
