// SPDX-License-Identifier: Apache-2.0
// The functions that a shared library exports.
#pragma once

#ifdef _WIN32
#define POLYOP_EXPORTED __declspec(dllexport)
#else
#define POLYOP_EXPORTED __attribute__((visibility("default")))
#endif
