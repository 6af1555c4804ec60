// SPDX-License-Identifier: Apache-2.0
// Tests reading and writing files: round trips, and damaged files, which must end in a Failure.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "cli/base/array.h"
#include "cli/base/damage.h"
#include "cli/base/exif.h"
#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/image.h"
#include "cli/base/npy.h"
#include "cli/base/number.h"
#include "cli/base/text.h"

namespace polyop::cli {
namespace fs = std::filesystem;
namespace {

class Files : public ::testing::Test {
 protected:
  Files() : folder_(std::filesystem::temp_directory_path() / ("polyop_files_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

Array Counting(DType dtype, const std::vector<int64_t>& shape) {
  Array a = MakeArray(dtype, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, static_cast<double>(i % 7));
  return a;
}

Image Noise(int64_t width, int64_t height) {
  Image image{width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * 3))};
  std::mt19937 rng(1);
  for (uint8_t& v : image.rgb) v = static_cast<uint8_t>(rng());
  return image;
}

// The reader must return or throw Failure.
template <class Read>
void ReadDamaged(const std::vector<uint8_t>& good, int trials, const Read& read) {
  std::mt19937 rng(2);
  for (int trial = 0; trial < trials; ++trial) {
    try {
      read(Damaged(good, rng));
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()), "");
    }
  }
}

TEST_F(Files, NpyRoundTrip) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kU8, DType::kI16, DType::kI32,
                      DType::kI64, DType::kBool}) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{}, {0}, {5}, {2, 3}, {1, 2, 0, 4}}) {
      const Array a = Counting(dtype, shape);
      const Array b = ParseNpy(FormatNpy(a), "a.npy");
      EXPECT_EQ(a.dtype, b.dtype);
      EXPECT_EQ(a.shape, b.shape);
      EXPECT_EQ(a.bytes, b.bytes);
    }
  }
}

TEST_F(Files, NpzRoundTrip) {
  const std::map<std::string, Array> arrays = {{"x", Counting(DType::kF32, {3, 4})},
                                               {"name with space", Counting(DType::kI64, {7})}};
  WriteNpz(Path("a.npz"), arrays);
  const auto read = ReadNpz(Path("a.npz"));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read.at("x").bytes, arrays.at("x").bytes);
  EXPECT_EQ(read.at("name with space").shape, arrays.at("name with space").shape);
}

TEST_F(Files, RejectsDamagedNpy) {
  ReadDamaged(FormatNpy(Counting(DType::kF32, {2, 3})), 3000,
              [](const std::vector<uint8_t>& bytes) { (void)ParseNpy(bytes, "bad.npy"); });
}

// Headers with missing, repeated or misspelt keys, and values of the wrong kind.
TEST(NpyHeader, IsParsedOrRejected) {
  const std::string descr[] = {"'descr': '<f4', ", "'descr': '', ",    "'descr': 'f', ", "'descr': '<f4, ",
                               "'descr': 4, ",     "'descr': '|u1', ", "'descr': [], ",  "",
                               "'desc': '<f4', "};
  const std::string order[] = {"'fortran_order': False, ", "'fortran_order': True, ", "'fortran_order': Maybe, ",
                               "'fortran_order': , ", ""};
  const std::string shape[] = {"'shape': (2, 3), ",
                               "'shape': (), ",
                               "'shape': (-1,), ",
                               "'shape': (nan,), ",
                               "'shape': 6, ",
                               "'shape': (6 6)",
                               "'shape': (2, 3",
                               "'shape': (1e1,), ",
                               "'shape': (9223372036854775807, 2), ",
                               "'shape': (99999999999999999999,), ",
                               "'shape': (0, 9223372036854775807), ",
                               ""};
  const std::string ends[] = {"}", "}}", "", ", }", "'shape': (6,), }", "'descr': '<f4', }", "\n"};
  int read = 0;
  for (const std::string& d : descr) {
    for (const std::string& o : order) {
      for (const std::string& s : shape) {
        for (const std::string& e : ends) {
          const std::string header = "{" + d + o + s + e;
          std::vector<uint8_t> bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<uint8_t>(header.size()), 0};
          bytes.insert(bytes.end(), header.begin(), header.end());
          bytes.resize(bytes.size() + 24);  // the data of six floats
          try {
            const Array array = ParseNpy(bytes, "bad.npy");
            EXPECT_LE(array.bytes.size(), 24u) << header;
            ++read;
          } catch (const Failure& failure) {
            EXPECT_EQ(failure.code(), kBadFile) << header;
            EXPECT_NE(std::string(failure.what()).find("bad.npy"), std::string::npos) << header;
          }
        }
      }
    }
  }
  EXPECT_GT(read, 0);
}

TEST(Number, ParsesWholeTextInRange) {
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_EQ(ParseInteger(" +7 "), 7);
  EXPECT_EQ(ParseInteger("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text : {"", " ", "+", "-", "+-1", "9223372036854775808", "1.0", "1e3", "0x10", "1 2", "nan", "1,"}) {
    EXPECT_FALSE(ParseInteger(text)) << text;
  }
  EXPECT_EQ(ParseReal("2.5e-1"), 0.25);
  EXPECT_TRUE(std::isnan(*ParseReal("nan")));
  EXPECT_EQ(ParseReal("-inf"), -std::numeric_limits<double>::infinity());
  for (const char* text : {"", "1e999", "1e-999", "0x10", "1.2.3", "one", "1 2", "--1"}) {
    EXPECT_FALSE(ParseReal(text)) << text;
  }
  EXPECT_EQ(SplitAt(',', "1,,2,"), (std::vector<std::string>{"1", "", "2", ""}));
  EXPECT_TRUE(SplitAt(',', "").empty());
  EXPECT_EQ(ParseShape("1x0x9223372036854775807", "--shape"),
            (std::vector<int64_t>{1, 0, std::numeric_limits<int64_t>::max()}));
  EXPECT_TRUE(ParseShape("", "--shape").empty());
  for (const char* text : {"nanx3", "-1", "1x", "x", "1x9223372036854775808", "1.5x2", "1X2"}) {
    EXPECT_THROW((void)ParseShape(text, "--shape"), Failure) << text;
  }
}

TEST_F(Files, RejectsDamagedNpz) {
  WriteNpz(Path("good.npz"), {{"x", Counting(DType::kF32, {3, 4})}});
  ReadDamaged(ReadFile(Path("good.npz")), 500, [&](const std::vector<uint8_t>& bytes) {
    WriteFile(Path("bad.npz"), bytes.data(), bytes.size());
    (void)ReadNpz(Path("bad.npz"));
  });
}

TEST_F(Files, AFileIsReplacedWhenItIsComplete) {
  WriteFile(Path("a"), "old", 3);
  {
    AtomicFile file(Path("a"));
    EXPECT_NE(file.partial(), Path("a"));
    std::ofstream(file.partial()) << "half";
  }
  EXPECT_EQ(ReadFile(Path("a")), (std::vector<uint8_t>{'o', 'l', 'd'}));
  WriteFile(Path("b"), "other", 5);
  fs::create_symlink(Path("b"), Path("link"));
  WriteFile(Path("link"), "new", 3);
  EXPECT_FALSE(fs::is_symlink(Path("link")));
  EXPECT_EQ(FileSize(Path("b")), 5u);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(Path("a")).parent_path()), fs::directory_iterator()), 3);
}

TEST(Text, EscapesControlCharacters) {
  EXPECT_EQ(Escaped("a\033]0;t\007\n\x7f\r"), "a\\u001b]0;t\\u0007\\u000a\\u007f\\u000d");
  EXPECT_EQ(EscapedLines("a\n\tb\033[2J"), "a\n\tb\\u001b[2J");
  EXPECT_EQ(Escaped("\033[31mred\033[0m \033[8m"), "\033[31mred\033[0m \\u001b[8m");
  EXPECT_EQ(Escaped("é…\xc2\x9b\xe2\x80\xae\xff\xc3"), "é…\\u009b\\u202e\\xff\\xc3");
  EXPECT_EQ(Escaped("\xed\xa0\x80\xc0\x80"), "\\xed\\xa0\\x80\\xc0\\x80");  // a surrogate, and an overlong zero
}

TEST_F(Files, PngIsLossless) {
  const Image image = Noise(17, 9);
  WriteImage(Path("a.png"), image);
  EXPECT_EQ(DecodeImage(ReadFile(Path("a.png")), "a.png")->rgb, image.rgb);
}

TEST_F(Files, RejectsDamagedImages) {
  for (const char* name : {"a.png", "a.jpg"}) {
    WriteImage(Path(name), Noise(17, 9));
    ReadDamaged(ReadFile(Path(name)), 400, [&](const std::vector<uint8_t>& bytes) { (void)DecodeImage(bytes, "bad"); });
  }
}

// Returns EXIF data with an orientation, in one of both byte orders.
std::vector<uint8_t> Exif(uint8_t orientation, bool little) {
  if (little) return {'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0};
  return {'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0};
}

// Inserts EXIF data behind the first bytes of a JPEG file.
std::vector<uint8_t> WithExif(const std::vector<uint8_t>& jpeg, const std::vector<uint8_t>& exif) {
  std::vector<uint8_t> file = {jpeg[0], jpeg[1], 0xFF, 0xE1, 0, static_cast<uint8_t>(exif.size() + 8),
                               'E',     'x',     'i',  'f',  0, 0};
  file.insert(file.end(), exif.begin(), exif.end());
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

TEST_F(Files, PhotosAreUpright) {
  WriteImage(Path("a.jpg"), Noise(17, 9));
  const std::vector<uint8_t> file = ReadFile(Path("a.jpg"));
  const Image stored = *DecodeImage(file, "a.jpg");
  for (const bool little : {false, true}) {
    EXPECT_EQ(DecodeImage(WithExif(file, Exif(1, little)), "a.jpg")->rgb, stored.rgb);
    const Image half = *DecodeImage(WithExif(file, Exif(3, little)), "a.jpg");
    EXPECT_TRUE(std::equal(half.rgb.rbegin() + 2, half.rgb.rbegin() + 3, stored.rgb.begin()));
    const Image quarter = *DecodeImage(WithExif(file, Exif(6, little)), "a.jpg");
    EXPECT_EQ(quarter.width, 9);
    EXPECT_EQ(quarter.height, 17);
    EXPECT_EQ(quarter.rgb[8 * 3], stored.rgb[0]);  // the left upper corner is now on the right
    EXPECT_EQ(DecodeImage(WithExif(file, Exif(9, little)), "a.jpg")->rgb, stored.rgb);
    ReadDamaged(WithExif(file, Exif(6, little)), 400,
                [](const std::vector<uint8_t>& bytes) { (void)Orientation(bytes); });
  }
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const int back = orientation == 6 ? 8 : orientation == 8 ? 6 : orientation;
    EXPECT_EQ(Upright(Upright(stored, orientation), back).rgb, stored.rgb) << orientation;
  }
}

TEST_F(Files, ImageSizes) {
  const Image image = Noise(8, 6);
  EXPECT_EQ(Resized(image, 6, 8).rgb, image.rgb);
  Image flat{5, 3, std::vector<uint8_t>(45, 77)};
  for (const auto& [height, width] : {std::pair{1, 1}, {7, 2}, {30, 50}}) {
    const Image scaled = Resized(flat, height, width);
    EXPECT_EQ(scaled.rgb, std::vector<uint8_t>(static_cast<size_t>(height * width * 3), 77));
  }
  const Image half = Resized(image, 3, 4);  // the mean of 2 x 2 pixels
  const auto at = [&](int64_t y, int64_t x) { return int{image.rgb[static_cast<size_t>((y * 8 + x) * 3)]}; };
  EXPECT_EQ(int{half.rgb[0]}, (at(0, 0) + at(0, 1) + at(1, 0) + at(1, 1) + 2) / 4);
  const Image boxed = Resized(flat, 10, 10, /*letterbox=*/true);  // 6 rows in the middle
  EXPECT_EQ(boxed.rgb[0], 114);
  EXPECT_EQ(boxed.rgb[(1 * 10 + 5) * 3], 114);
  EXPECT_EQ(boxed.rgb[(2 * 10 + 5) * 3], 77);
  EXPECT_EQ(boxed.rgb[(7 * 10 + 5) * 3], 77);
  EXPECT_EQ(boxed.rgb[(8 * 10 + 5) * 3], 114);
}

TEST(Images, BoxesAndScoresAreNone) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{20, 4}, {1, 100, 5}, {1, 1, 50, 7}, {3, 40, 4}, {100}, {1, 80, 20, 20}}) {
    EXPECT_THROW((void)FromTensor(Counting(DType::kF32, shape), {}, "boxes"), Failure) << ShapeText(shape);
  }
  ImageFormat stated;
  stated.stated = true;
  EXPECT_EQ(FromTensor(Counting(DType::kF32, {20, 4}), stated, "y").width, 4);
  EXPECT_EQ(FromTensor(Counting(DType::kF32, {1, 3, 5, 7}), {}, "y").width, 7);
  EXPECT_EQ(FromTensor(Counting(DType::kF32, {32, 16}), {}, "y").height, 32);
}

TEST(Images, MeanAndStandardDeviation) {
  ImageFormat format;
  format.mean = {0.5, 0.25, 0};
  format.std = {2};
  const Image white{1, 1, {255, 255, 255}};
  const Array tensor = ToTensor(white, format, DType::kF32);
  EXPECT_EQ(tensor.at(0), 0.25);
  EXPECT_EQ(tensor.at(1), 0.375);
  EXPECT_EQ(tensor.at(2), 0.5);
}

TEST_F(Files, OutputsGetFolders) {
  PrepareOutput(Path("new/folder/y.npy"));
  EXPECT_TRUE(std::filesystem::is_directory(Path("new/folder")));
  EXPECT_THROW(PrepareOutput(Path("new/folder")), Failure);
  WriteFile(Path("file"), "x", 1);
  EXPECT_THROW(PrepareOutput(Path("file/y.npy")), Failure);
  EXPECT_THROW(PrepareOutput("/proc/none/y.npy"), Failure);
}

TEST_F(Files, ImageToTensorRoundTrip) {
  const Image image = Noise(5, 4);
  for (auto layout : {ImageFormat::Layout::kNchw, ImageFormat::Layout::kNhwc}) {
    for (auto color : {ImageFormat::Color::kRgb, ImageFormat::Color::kBgr}) {
      ImageFormat format;
      format.layout = layout;
      format.color = color;
      format.low = -1;
      EXPECT_EQ(FromTensor(ToTensor(image, format, DType::kF32), format, "x").rgb, image.rgb);
    }
  }
  EXPECT_THROW((void)FromTensor(Counting(DType::kF32, {2, 3, 4, 4}), {}, "x"), Failure);
}

TEST(Array, RejectsImpossibleSizes) {
  EXPECT_THROW((void)MakeArray(DType::kF32, {int64_t{1} << 40, int64_t{1} << 40}), Failure);
  EXPECT_THROW((void)MakeArray(DType::kF32, {-1}), Failure);
  const Array empty = MakeArray(DType::kF32, {int64_t{1} << 40, int64_t{1} << 40, 0});
  EXPECT_EQ(empty.bytes.size(), 0u);
  EXPECT_EQ(empty.size(), 0);
}

TEST(Array, CastSaturates) {
  Array a = MakeArray(DType::kF64, {3});
  a.set(0, 1e20);
  a.set(1, -5);
  a.set(2, std::numeric_limits<double>::quiet_NaN());
  const Array b = Cast(a, DType::kU8);
  EXPECT_EQ(b.at(0), 255);
  EXPECT_EQ(b.at(1), 0);
  EXPECT_EQ(b.at(2), 0);
}

TEST(Text, FindsTheNearestName) {
  EXPECT_EQ(Nearest("roi_alin", {"nms", "roi_align"}), "roi_align");
  EXPECT_EQ(Nearest("MMCV::ROIALIGN", {"mmcv::RoiAlign"}), "mmcv::RoiAlign");
  EXPECT_EQ(Nearest("--htlm", {"--help", "--html"}), "--html");  // two neighbours are exchanged
  EXPECT_EQ(Nearest("something else", {"nms"}), "");
}

TEST(Text, TablesAlign) {
  EXPECT_EQ(Table({"a", "bb"}, {{"xyz", "1"}}), "  a    bb\n  ---  --\n  xyz  1\n");
  EXPECT_EQ(MarkdownTable({"a"}, {{"x|y"}}), "| a |\n| --- |\n| x\\|y |\n");
}

}  // namespace
}  // namespace polyop::cli
