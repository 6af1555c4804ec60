// SPDX-License-Identifier: Apache-2.0
#include "cli/base/npy.h"

#include <cstring>
#include <memory>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "minizip/unzip.h"
#include "minizip/zip.h"

namespace polyop::cli {
namespace {

struct TypeCode {
  DType dtype;
  const char* code;
};
constexpr TypeCode kTypes[] = {{DType::kF32, "<f4"}, {DType::kF64, "<f8"}, {DType::kF16, "<f2"},
                               {DType::kI8, "|i1"},  {DType::kU8, "|u1"},  {DType::kI16, "<i2"},
                               {DType::kI32, "<i4"}, {DType::kI64, "<i8"}, {DType::kBool, "|b1"}};

// Parses the header, a Python dictionary of three known keys.
class Header {
 public:
  Header(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {}

  [[noreturn]] void Fail(const std::string& why) const {
    throw Failure(kBadFile, "'" + name_ + "' is not a readable .npy file: " + why,
                  "write it with numpy.save(file, array) from a numeric array");
  }
  bool Accept(char c) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Accept(c)) Fail(std::string("its header lacks '") + c + "'");
  }
  std::string Quoted() {
    char quote = '\'';
    if (!Accept('\'')) {
      if (!Accept('"')) Fail("its header lacks a quoted text (arrays of records or objects are not supported)");
      quote = '"';
    }
    const size_t end = text_.find(quote, at_);
    if (end == std::string::npos) Fail("its header ends too early");
    const std::string value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  std::string Word() {
    Accept('\0');
    size_t end = at_;
    while (end < text_.size() && std::isalpha(static_cast<unsigned char>(text_[end]))) ++end;
    const std::string value = text_.substr(at_, end - at_);
    at_ = end;
    return value;
  }
  int64_t Number() {
    Accept('\0');
    int64_t value = 0;
    const size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        Fail("an extent overflows");
      }
      ++at_;
    }
    if (at_ == begin) Fail("its shape is not a tuple of numbers");
    return value;
  }

 private:
  std::string text_, name_;
  size_t at_ = 0;
};

void FromFortranOrder(Array& array) {
  const Array source = array;
  const size_t item = SizeOf(array.dtype), rank = array.shape.size();
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < array.size(); ++i) {
    int64_t from = 0, stride = 1;
    for (size_t d = 0; d < rank; ++d) {
      from += index[d] * stride;
      stride *= array.shape[d];
    }
    std::memcpy(array.bytes.data() + static_cast<size_t>(i) * item,
                source.bytes.data() + static_cast<size_t>(from) * item, item);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < array.shape[d]) break;
      index[d] = 0;
    }
  }
}

struct Unzipped {
  void operator()(void* file) const { unzClose(file); }
};

}  // namespace

Array ParseNpy(std::span<const uint8_t> bytes, const std::string& name) {
  Header bad("", name);
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    bad.Fail("it does not begin with NumPy's magic string");
  const int version = bytes[6];
  if (version < 1 || version > 3) bad.Fail("its version " + std::to_string(version) + " is unknown");
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) bad.Fail("it is truncated");
  size_t length = bytes[8] | static_cast<size_t>(bytes[9]) << 8;
  if (version > 1) length |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
  if (length > bytes.size() - start) bad.Fail("it is truncated");

  Header header(std::string(reinterpret_cast<const char*>(bytes.data()) + start, length), name);
  std::string descr;
  bool fortran = false, has_descr = false, has_order = false, has_shape = false;
  const auto once = [&](bool& seen, const char* key) {
    if (seen) header.Fail(std::string("its header has ") + key + " twice");
    seen = true;
  };
  std::vector<int64_t> shape;
  header.Expect('{');
  while (!header.Accept('}')) {
    const std::string key = header.Quoted();
    header.Expect(':');
    if (key == "descr") {
      once(has_descr, "descr");
      descr = header.Quoted();
    } else if (key == "fortran_order") {
      once(has_order, "fortran_order");
      const std::string order = header.Word();
      if (order != "True" && order != "False") header.Fail("its fortran_order is neither True nor False");
      fortran = order == "True";
    } else if (key == "shape") {
      once(has_shape, "shape");
      header.Expect('(');
      while (!header.Accept(')')) {
        shape.push_back(header.Number());
        if (shape.size() > 32) header.Fail("it has more than 32 dimensions");
        if (!header.Accept(',')) {
          header.Expect(')');
          break;
        }
      }
    } else {
      header.Fail("its header has the unknown key '" + key + "'");
    }
    header.Accept(',');
  }
  if (!has_descr) header.Fail("its header has no descr, the type of its elements");
  if (!has_order) header.Fail("its header has no fortran_order");
  if (!has_shape) header.Fail("its header has no shape");
  for (const TypeCode& type : kTypes) {
    // Bytes have no order: "<u1" equals "|u1".
    const bool same = SizeOf(type.dtype) == 1 && descr.size() == 3 && descr.ends_with(type.code + 1);
    if (descr != type.code && !same) continue;
    int64_t want = static_cast<int64_t>(SizeOf(type.dtype));
    for (int64_t d : shape) {
      if (__builtin_mul_overflow(want, d, &want)) header.Fail("its shape " + ShapeText(shape) + " overflows");
    }
    const size_t got = bytes.size() - start - length;
    if (static_cast<size_t>(want) > got) {
      header.Fail("it is truncated: shape " + ShapeText(shape) + ": expected " + std::to_string(want) + " bytes, got " +
                  std::to_string(got));
    }
    const uint8_t* data = bytes.data() + start + length;
    Array array{type.dtype, shape, {data, data + want}};
    if (fortran && shape.size() > 1) FromFortranOrder(array);
    return array;
  }
  header.Fail("its type '" + descr + "' is not supported: expected little-endian float, integer or bool");
}

std::vector<uint8_t> FormatNpy(const Array& array) {
  Array stored = array.dtype == DType::kBF16 ? Cast(array, DType::kF32) : array;  // NumPy has no bfloat16
  std::string code;
  for (const TypeCode& type : kTypes) {
    if (type.dtype == stored.dtype) code = type.code;
  }
  std::string shape = "(";
  for (int64_t d : stored.shape) shape += std::to_string(d) + ", ";
  if (stored.shape.size() > 1) shape.resize(shape.size() - 2);
  if (stored.shape.size() == 1) shape.resize(shape.size() - 1);
  std::string header = "{'descr': '" + code + "', 'fortran_order': False, 'shape': " + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  const std::string start = {'\x93',
                             'N',
                             'U',
                             'M',
                             'P',
                             'Y',
                             1,
                             0,
                             static_cast<char>(header.size() & 0xFF),
                             static_cast<char>(header.size() >> 8)};
  const std::string text = start + header;
  std::vector<uint8_t> bytes(text.size() + stored.bytes.size());
  std::copy(text.begin(), text.end(), bytes.begin());
  std::copy(stored.bytes.begin(), stored.bytes.end(), bytes.begin() + static_cast<ptrdiff_t>(text.size()));
  return bytes;
}

std::map<std::string, Array> ReadNpz(const std::string& path, const std::set<std::string>& names, bool is_own) {
  const auto bad = [&](const std::string& why) {
    return Failure(kBadFile, "'" + path + "' is not a readable .npz file: " + why,
                   "write it with numpy.savez(file, name=array)");
  };
  const uint64_t file_size = FileSize(path);
  const std::unique_ptr<void, Unzipped> archive(unzOpen64(path.c_str()));
  if (!archive) throw bad("it is not a zip archive");
  const auto each = [&](const auto& visit) {  // calls visit(member, name of the array, size) for those to read
    for (int at = unzGoToFirstFile(archive.get()); at == UNZ_OK; at = unzGoToNextFile(archive.get())) {
      unz_file_info64 info;
      char member[512] = {};
      if (unzGetCurrentFileInfo64(archive.get(), &info, member, sizeof(member) - 1, nullptr, 0, nullptr, 0) != UNZ_OK) {
        throw bad("its list of files is damaged");
      }
      std::string name = member;
      if (name.size() > 4 && name.ends_with(".npy")) name.resize(name.size() - 4);
      if (names.empty() || names.contains(name)) visit(std::string(member), name, uint64_t{info.uncompressed_size});
    }
  };
  uint64_t claimed = 0;
  each([&](const std::string& member, const std::string&, uint64_t size) {
    // Deflate shrinks at most 1032 times. Larger claims are false, or several entries claim the same bytes.
    const uint64_t most = file_size * 1100 + 4096;
    claimed += std::min(size, most + 1);
    if (claimed > most) throw bad("'" + member + "' claims an impossible size");
  });
  if (!is_own) TakeMemory(path, claimed, file_size);
  std::map<std::string, Array> arrays;
  each([&](const std::string& member, const std::string& name, uint64_t size) {
    std::vector<uint8_t> bytes(size);
    if (unzOpenCurrentFile(archive.get()) != UNZ_OK) throw bad("'" + member + "' cannot be opened");
    size_t done = 0;
    while (done < bytes.size()) {
      const unsigned chunk = static_cast<unsigned>(std::min<size_t>(bytes.size() - done, 1u << 30));
      const int got = unzReadCurrentFile(archive.get(), bytes.data() + done, chunk);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    const bool intact = unzCloseCurrentFile(archive.get()) == UNZ_OK && done == bytes.size();
    if (!intact) throw bad("'" + member + "' is damaged");
    arrays[name] = ParseNpy(bytes, path + ":" + member);
  });
  if (arrays.empty() && names.empty()) throw bad("it holds no array");
  return arrays;
}

void WriteNpz(const std::string& path, const std::map<std::string, Array>& arrays) {
  zipFile archive = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
  bool good = archive != nullptr;
  for (const auto& [name, array] : arrays) {
    if (!good) break;
    const std::vector<uint8_t> bytes = FormatNpy(array);
    const int zip64 = bytes.size() > 0xFFFFFFFFu;
    good = zipOpenNewFileInZip64(archive, (name + ".npy").c_str(), nullptr, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED,
                                 1, zip64) == ZIP_OK;
    for (size_t done = 0; good && done < bytes.size();) {
      const unsigned chunk = static_cast<unsigned>(std::min<size_t>(bytes.size() - done, 1u << 30));
      good = zipWriteInFileInZip(archive, bytes.data() + done, chunk) == ZIP_OK;
      done += chunk;
    }
    good = good && zipCloseFileInZip(archive) == ZIP_OK;
  }
  if (archive != nullptr) good = zipClose(archive, nullptr) == ZIP_OK && good;
  if (!good)
    throw Failure(kBadFile, "'" + path + "' cannot be written", "does its folder exist, and may you write there?");
}

}  // namespace polyop::cli
