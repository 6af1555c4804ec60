// Marks functions that CPU and GPU share: arithmetic that is compiled for both and tested on the CPU.
#pragma once

#ifdef __CUDACC__
#define POLYOP_HD __host__ __device__
#else
#define POLYOP_HD
#endif
