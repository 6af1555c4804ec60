// SPDX-License-Identifier: Apache-2.0
#include "cli/base/image.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "adapters/c/polyop.h"
#include "cli/base/exif.h"
#include "cli/base/failure.h"
#include "cli/base/file.h"

namespace polyop::cli {
namespace {

Failure Unreadable(const std::string& path, const std::string& why) {
  return Failure(kBadFile, "'" + path + "' is not a readable image: " + why);
}

// Checks the size that a file claims before its pixels are allocated. No valid file has more pixels per byte than
// `most`.
void CheckSize(const std::string& path, int64_t width, int64_t height, size_t file_size, int64_t most) {
  if (width < 1 || height < 1 || width > kMaxPixels / height ||
      width * height > static_cast<int64_t>(file_size) * most) {
    throw Unreadable(path, "it claims " + std::to_string(width) + "x" + std::to_string(height) + " pixels");
  }
  TakeMemory(path, static_cast<uint64_t>(width * height * 3), file_size);
}

// Returns true for 16 bits per channel, and for a gamma other than sRGB's.
bool NeedsConversion(const std::vector<uint8_t>& png) {
  constexpr size_t kDepth = 24;
  constexpr double kSrgbGamma = 45455;  // in the unit of the file
  if (png.size() > kDepth && png[kDepth] == 16) return true;
  const std::span<const uint8_t> gamma = PngChunk(png, "gAMA");
  if (gamma.size() != 4 || !PngChunk(png, "sRGB").empty()) return false;
  const uint32_t stored = uint32_t{gamma[0]} << 24 | uint32_t{gamma[1]} << 16 | uint32_t{gamma[2]} << 8 | gamma[3];
  return std::fabs(stored / kSrgbGamma - 1) > 0.05;
}

Image DecodePng(const std::string& path, const std::vector<uint8_t>& bytes) {
  png_image png;
  std::memset(&png, 0, sizeof(png));
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> guard(&png, png_image_free);
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) throw Unreadable(path, png.message);
  constexpr int64_t kMaxPerByte = 8 * 1100;  // of one bit; Deflate shrinks at most 1032 times
  CheckSize(path, png.width, png.height, bytes.size(), kMaxPerByte);
  png.format = PNG_FORMAT_RGB;
  Image image{png.width, png.height, std::vector<uint8_t>(PNG_IMAGE_SIZE(png))};
  const png_color background = {255, 255, 255};  // behind transparent pixels
  if (!png_image_finish_read(&png, &background, image.rgb.data(), 0, nullptr)) throw Unreadable(path, png.message);
  return image;
}

std::optional<Image> DecodeJpeg(const std::string& path, const std::vector<uint8_t>& bytes) {
  const std::unique_ptr<void, int (*)(tjhandle)> jpeg(tjInitDecompress(), tjDestroy);
  int width = 0, height = 0, subsampling = 0, space = 0;
  const auto size = static_cast<unsigned long>(bytes.size());
  if (tjDecompressHeader3(jpeg.get(), bytes.data(), size, &width, &height, &subsampling, &space) != 0) {
    throw Unreadable(path, tjGetErrorStr2(jpeg.get()));
  }
  if (space == TJCS_CMYK || space == TJCS_YCCK) return std::nullopt;
  CheckSize(path, width, height, bytes.size(), kMaxPixels);
  Image image{width, height, std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height) * 3)};
  // A warning means that the library replaced damaged data, so it is an error here.
  if (tjDecompress2(jpeg.get(), bytes.data(), size, image.rgb.data(), width, 0, height, TJPF_RGB, 0) != 0) {
    throw Unreadable(path, tjGetErrorStr2(jpeg.get()));
  }
  return image;
}

void WritePng(const std::string& path, const Image& image) {
  png_image png;
  std::memset(&png, 0, sizeof(png));
  png.version = PNG_IMAGE_VERSION;
  png.format = PNG_FORMAT_RGB;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  AtomicFile file(path);
  if (!png_image_write_to_file(&png, file.partial().c_str(), 0, image.rgb.data(), 0, nullptr)) {
    throw Failure(kBadFile, "'" + path + "' cannot be written: " + png.message);
  }
  file.Commit();
}

void WriteJpeg(const std::string& path, const Image& image) {
  const std::unique_ptr<void, int (*)(tjhandle)> jpeg(tjInitCompress(), tjDestroy);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int failed = tjCompress2(jpeg.get(), image.rgb.data(), static_cast<int>(image.width), 0,
                                 static_cast<int>(image.height), TJPF_RGB, &bytes, &size, TJSAMP_444, 95, 0);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> guard(bytes, tjFree);
  if (failed != 0) throw Failure(kBadFile, "'" + path + "' cannot be encoded: " + tjGetErrorStr2(jpeg.get()));
  WriteFile(path, bytes, size);
}

// Returns the value of a channel from a list of none, one or all; `otherwise` if there is none.
double Of(const std::vector<double>& values, int channel, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(channel)];
}

// The index of a pixel's channel in a tensor of one image.
struct Indexer {
  ImageFormat::Layout layout;
  int64_t channels, height, width;
  int64_t operator()(int64_t c, int64_t y, int64_t x) const {
    return layout == ImageFormat::Layout::kNchw ? (c * height + y) * width + x : (y * width + x) * channels + c;
  }
};

}  // namespace

std::optional<Image> DecodeImage(const std::vector<uint8_t>& bytes, const std::string& path) {
  std::optional<Image> image;
  if (bytes.size() >= 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) {
    if (!NeedsConversion(bytes)) image = DecodePng(path, bytes);
  } else if (bytes.size() >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF) {
    image = DecodeJpeg(path, bytes);
  }
  return image ? std::optional(Upright(*image, Orientation(bytes))) : std::nullopt;
}

void WriteImage(const std::string& path, const Image& image) {
  if (image.width < 1 || image.height < 1)
    throw Failure(kFailed, "'" + path + "': expected an image with pixels, got an empty one");
  const std::string extension = Extension(path);
  if (extension == ".png") return WritePng(path, image);
  WriteJpeg(path, image);
}

Image Resized(const Image& image, int64_t height, int64_t width, bool letterbox) {
  Image resized{width, height, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
  const char* const error =
      polyop_resize(image.rgb.data(), image.height, image.width, resized.rgb.data(), height, width, letterbox);
  if (error != nullptr) throw Failure(kFailed, error);
  return resized;
}

Array ToTensor(const Image& image, const ImageFormat& format, DType dtype) {
  const int channels = format.channels();
  const bool first = format.layout == ImageFormat::Layout::kNchw;
  Array tensor = MakeArray(dtype, first ? std::vector<int64_t>{1, channels, image.height, image.width}
                                        : std::vector<int64_t>{1, image.height, image.width, channels});
  const Indexer index{format.layout, channels, image.height, image.width};
  const double scale = (format.high - format.low) / 255;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const uint8_t* pixel = image.rgb.data() + (y * image.width + x) * 3;
      for (int c = 0; c < channels; ++c) {
        const double value = format.color == ImageFormat::Color::kGray
                                 ? 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]
                             : format.color == ImageFormat::Color::kBgr ? pixel[2 - c]
                                                                        : pixel[c];
        tensor.set(index(c, y, x), (format.low + value * scale - Of(format.mean, c, 0)) / Of(format.std, c, 1));
      }
    }
  }
  return tensor;
}

Image FromTensor(const Array& tensor, const ImageFormat& format, const std::string& name) {
  std::vector<int64_t> shape = tensor.shape;
  if (shape.size() == 4 && shape[0] == 1) shape.erase(shape.begin());
  const bool first = format.layout == ImageFormat::Layout::kNchw;
  if (shape.size() == 2) shape.insert(first ? shape.begin() : shape.end(), 1);
  const int64_t channels = shape.size() == 3 ? shape[first ? 0 : 2] : 0;
  Image image;
  if (channels > 0) {
    image.height = shape[first ? 1 : 0];
    image.width = shape[first ? 2 : 1];
  }
  const bool is_small = std::min(image.height, image.width) < kMinExtent;
  const bool is_sure = format.stated || (tensor.shape.size() == 4 && channels == 3);
  if ((channels != 1 && channels != 3) || (is_small && !is_sure)) {
    throw Failure(kFailed, "output '" + name + "': expected one image, got shape " + ShapeText(tensor.shape),
                  "write it as .npy or .npz, or give --layout if it is an image");
  }
  image.rgb.resize(static_cast<size_t>(image.height * image.width * 3));
  const Indexer index{format.layout, channels, image.height, image.width};
  const double scale = 255 / (format.high - format.low);
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int64_t from = channels == 1 ? 0 : format.color == ImageFormat::Color::kBgr ? 2 - c : c;
        const double value = (tensor.at(index(from, y, x)) - format.low) * scale;
        image.rgb[static_cast<size_t>((y * image.width + x) * 3 + c)] =
            std::isnan(value) ? 0 : static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  return image;
}

}  // namespace polyop::cli
