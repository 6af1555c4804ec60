// Tables that a library makes when it is loaded, and that must be gone when it is unloaded: a runtime may load and
// unload it many times in one process. When the process ends they stay, for sessions of a program's own static objects,
// and threads that still run one, outlive the static objects of a library. So a table is reached by a pointer, and
//
//   __attribute__((destructor)) void FreeTable() { if (!ProcessEnds()) delete table; }
//
// frees it.
#pragma once

namespace polyop {

/// For functions with __attribute__((destructor)): at the end of a process they are called after static objects are
/// destroyed, in a library that is unloaded before it.
bool ProcessEnds();

}  // namespace polyop
