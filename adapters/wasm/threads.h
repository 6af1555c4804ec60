// SPDX-License-Identifier: Apache-2.0
// The threads of a module with shared memory: workers of JavaScript (sdk/web/worker.js), each of which runs
// polyop_web_work() on its stack.
#pragma once

#include <cstdint>

namespace polyop {

/// Calls body(argument, i) for each i in [0, tasks), here and in the workers that are ready; without workers here
/// alone. Traps if a worker did.
void RunOnWorkers(int64_t tasks, void (*body)(void*, int64_t), void* argument);

}  // namespace polyop
