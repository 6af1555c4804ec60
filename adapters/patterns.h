// SPDX-License-Identifier: Apache-2.0
// The patterns (core/pattern.h) of a file's graph, for callers that are not a runtime.
#pragma once

#include "platform/exported.h"

/// Takes a graph as JSON, in which nodes are in topological order and values and nodes have indices:
///
///   {"opset": 18, "sizes_are_fixed": true,
///    "values": [{"name": "x", "type": "f32", "shape": [1, 3], "constant": true, "output": false, "data": 140054}],
///    "nodes": [{"domain": "", "type": "Conv", "name": "n", "inputs": [0, -1], "outputs": [1], "captured": [2],
///               "attributes": {name: number, text or list},
///               "subgraphs": [{"inputs": [3], "outputs": [4], "nodes": […]}]}]}
///
/// with polyop's names of types, and null for a type that it lacks, and for shapes and data that are not known. Data is
/// the address of the elements of a constant, which the caller keeps.
/// Returns what the pattern of this name finds:
///
///   {"matches": [{"at": 7, "inputs": [0], "outputs": [5], "node": "mmcv::MMCVCornerPool", "attributes": {…},
///                 "parameters": {…}, "work": 64, "min_work": 0, "refused": ""}]}
///
/// or {"error": text}. The library owns the text, which lives until the thread's next call.
extern "C" POLYOP_EXPORTED const char* polyop_find_pattern(const char* pattern, const char* graph);
