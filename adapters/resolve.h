// SPDX-License-Identifier: Apache-2.0
// The operator of a node of a model, and the values of its attributes, for callers that are not a runtime.
#pragma once

#include "platform/exported.h"

/// Takes a node as JSON: {"domain", "type", "attributes": {name: number, text or list}}. Infinities and NaN are texts:
/// "Infinity", "-Infinity", "NaN". Returns "null" if the library has no operator for nodes of this name, and else
///
///   {"operator": "roi_align", "node": 0, "attributes": {name: value}, "error": text}
///
/// with the index of the entry among the operator's node names, the values by the definition's names (null where they
/// are not finite) or, instead, the error with which a runtime would refuse the node. "operator" is null if the
/// attributes select none. The library owns the text, which lives until the thread's next call.
extern "C" POLYOP_EXPORTED const char* polyop_resolve_node(const char* node);
