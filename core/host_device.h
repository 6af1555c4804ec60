// SPDX-License-Identifier: Apache-2.0
// Defines POLYOP_HD, which marks functions that are compiled for the CPU and the GPU and tested on the CPU.
#pragma once

#ifdef __CUDACC__
#define POLYOP_HD __host__ __device__
#else
#define POLYOP_HD
#endif
