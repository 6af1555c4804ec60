// SPDX-License-Identifier: Apache-2.0
// The functions that JavaScript calls (sdk/web/), next to polyop_resize of the C interface, malloc and free.
#include <cstdint>

#include "adapters/c/polyop.h"
#include "adapters/wasm/threads.h"

extern "C" {

/// JavaScript's function that allocates an output, by malloc; null if it refuses the size.
__attribute__((import_module("polyop"), import_name("output"))) void* polyop_web_output(int32_t output, int32_t type,
                                                                                        int32_t rank,
                                                                                        const int64_t* shape);

/// Calls polyop_call with outputs of polyop_web_output: JavaScript has no address of a function to pass.
const char* polyop_web_call(const char* op, int32_t num_inputs, const polyop_tensor* inputs, int32_t num_attributes,
                            const polyop_attribute* attributes) {
  const polyop_outputs outputs = {nullptr, [](void*, int32_t output, int32_t type, int32_t rank, const int64_t* shape) {
                                    return polyop_web_output(output, type, rank, shape);
                                  }};
  const polyop_threads threads = {nullptr, [](void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
                                    polyop::RunOnWorkers(tasks, body, argument);
                                  }};
  return polyop_call(op, num_inputs, inputs, num_attributes, attributes, &outputs, &threads);
}
}
