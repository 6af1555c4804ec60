# SPDX-License-Identifier: Apache-2.0
# Included by every build of operators, for polyop's own library and for user-built libraries, in the order of
# dependencies.
include(options)
include(compiler)
include(precompiled)
include(dependencies)
if(POLYOP_CUDA)
  include(cuda)
endif()
include(testing)
include(operators)
include(library)
include(runtimes)
