// SPDX-License-Identifier: Apache-2.0
#include "cli/read_image.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/npy.h"
#include "cli/base/process.h"
#include "cli/python.h"

namespace polyop::cli {
namespace {

constexpr const char* kWritable[] = {".png", ".jpg", ".jpeg"};
constexpr const char* kOthers[] = {".bmp", ".webp", ".tif", ".tiff"};

template <size_t n>
bool HasExtension(const std::string& path, const char* const (&extensions)[n]) {
  return std::find(std::begin(extensions), std::end(extensions), Extension(path)) != std::end(extensions);
}

Image DecodeInPython(const std::string& path) {
  const TemporaryFolder folder;
  const std::string pixels = folder.File("pixels.npy");
  AskPython("read_image",
            {{"file", std::filesystem::absolute(path).string()},
             {"name", path},
             {"pixels", pixels},
             {"memory", MemoryLimit()}},
            "polyop and Pillow (pip install 'polyop[batch]') for images of this kind");
  const Array array = ParseNpy(ReadFile(pixels), pixels);
  if (array.dtype != DType::kU8 || array.shape.size() != 3 || array.shape[2] != 3) {
    throw Failure(kFailed, "'" + path + "': expected pixels u8[H, W, 3] from Python, got " + ShapeText(array.shape));
  }
  TakeMemory(path, array.bytes.size(), FileSize(path));  // Python has checked it for the file alone
  return Image{array.shape[1], array.shape[0], array.bytes};
}

}  // namespace

bool IsWritableImage(const std::string& path) { return HasExtension(path, kWritable); }
bool IsImage(const std::string& path) { return IsWritableImage(path) || HasExtension(path, kOthers); }

Image ReadImage(const std::string& path) {
  std::optional<Image> image = DecodeImage(ReadFile(path), path);
  return image ? *std::move(image) : DecodeInPython(path);
}

}  // namespace polyop::cli
