// SPDX-License-Identifier: Apache-2.0
// Replaces a header of glibc 2.32, which newer libstdc++ includes, in builds for an older glibc: libstdc++ then counts
// references by atomic operations, as it did before.
#pragma once

static const char __libc_single_threaded = 0;  // NOLINT(bugprone-reserved-identifier)
