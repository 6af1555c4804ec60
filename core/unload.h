// SPDX-License-Identifier: Apache-2.0
// Frees a library's global tables when it is unloaded. A runtime may load and unload a library many times in one
// process, so tables must be freed then. They must not be freed at the end of the process: sessions in a program's
// static objects, and threads that still run one, outlive the static objects of a library. A table is therefore held by
// a raw pointer, and this function frees it:
//
//   __attribute__((destructor)) void FreeTable() { if (!ProcessEnds()) delete table; }
#pragma once

namespace polyop {

/// Returns true if the process is ending, false if only this library is being unloaded. For functions with
/// __attribute__((destructor)), which run after static objects are destroyed.
bool ProcessEnds();

}  // namespace polyop
