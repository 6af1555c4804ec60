// SPDX-License-Identifier: Apache-2.0
// polyop as an execution provider of ONNX Runtime 1.24 and newer, which loads it as a plugin. The provider brings the
// custom operators' domains into a session, and computes nodes of standard operators (core/standard_node.h) on the
// CPU by a kernel registry: compiled nodes would make the creation of large sessions slow.
#pragma once

#include "adapters/onnxruntime/registration.h"

#if ORT_API_VERSION >= 24

namespace polyop::onnxruntime {

/// The first API version with kernel registries and with domains of providers.
inline constexpr uint32_t kOldestProviderApi = 24;

/// Creates the runtime's factory of providers, or returns the one that an earlier registration created. A second
/// registration while the first one lasts is an error. Does not throw.
OrtStatus* CreateFactory(const char* registration, const OrtApiBase* base, const MakeOps& make_ops,
                         OrtEpFactory** factory);
/// Ends a registration. The factory stays: sessions keep pointers to it.
void ReleaseFactory(OrtEpFactory* factory);

}  // namespace polyop::onnxruntime

#endif
