// SPDX-License-Identifier: Apache-2.0
// Images of every kind: the frequent ones are decoded here, the others in Python.
#pragma once

#include <string>

#include "cli/base/image.h"

namespace polyop::cli {

/// Returns true for the extensions of images: .png .jpg .jpeg .bmp .webp .tif .tiff.
bool IsImage(const std::string& path);
/// Returns true for the extensions that WriteImage supports: .png .jpg .jpeg.
bool IsWritableImage(const std::string& path);

/// Reads an image file. Throws Failure if it is damaged or of another kind, or if it needs the Python package, which is
/// not installed.
Image ReadImage(const std::string& path);

}  // namespace polyop::cli
