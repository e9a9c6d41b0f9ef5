// The format's files: golden ones of another writer, every way a file can be broken, and what is written read back bit
// for bit. Not here: names of modules (test_module.cpp). Next: ../nn/safetensors.h.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../autograd/factory.h"
#include "../nn/atomic_file.h"
#include "../nn/safetensors.h"

using namespace tapestry;

namespace {

const std::string golden = std::string(TAPESTRY_GOLDEN_DIR) + "/format/";

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("tapestry_safetensors_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string write(const std::string& bytes) const {
    const std::string file = (path / "x.safetensors").string();
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string with_length(uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), 8) + rest;
}
std::string file(const std::string& header, size_t data) {
  return with_length(header.size(), header + std::string(data, '\1'));
}

/// The message of the FormatError that reading gives, or "" when it loads.
std::string refusal(const std::string& path) {
  try {
    static_cast<void>(read_safetensors(path));
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                  const std::string& dtype = "F32") {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

}  // namespace

TEST_SUITE("safetensors") {
  TEST_CASE("golden files load or are refused as they must") {
    const auto expected = nlohmann::json::parse(bytes_of(golden + "expected.json"));
    REQUIRE(expected.size() == 9);
    for (const auto& row : expected.items()) {
      CAPTURE(row.key());
      CHECK(refusal(golden + row.key() + ".safetensors").empty() == row.value()["load"].get<bool>());
    }
    const TensorFile plain = read_safetensors(golden + "ok_plain.safetensors");
    CHECK(plain.tensors.at("a").to_vector() == std::vector<float>{1.5, -2, 0.25});
    CHECK(plain.tensors.at("b").shape() == Shape{2, 2});
    CHECK(plain.report.empty());
  }

  TEST_CASE("every dtype arrives with its exact values, and converted ones are reported") {
    const TensorFile all = read_safetensors(golden + "ok_all_dtypes.safetensors");
    const struct {
      const char* name;
      DType dtype;
      std::vector<double> values;
    } rows[] = {
        {"f64", DType::f64, {1.0 / 3, -1e300}},
        {"f32", DType::f32, {1.5, -2, 0.25}},
        {"f16", DType::f32, {0.0999755859375, 65504, 0x1p-24}},
        {"bf16", DType::bf16, {0.333984375, 0x1.C4p127, -0x1p-133}},
        {"i64", DType::i64, {-0x1p62, 7}},
        {"i32", DType::i64, {1, -2}},
        {"u8", DType::i64, {0, 255}},
        {"bool", DType::boolean, {1, 0, 1}},
    };
    REQUIRE(all.tensors.size() == std::size(rows));
    for (const auto& row : rows) {
      CAPTURE(row.name);
      CHECK(all.tensors.at(row.name).dtype() == row.dtype);
      CHECK(all.tensors.at(row.name).to_vector<double>() == row.values);
    }
    REQUIRE(all.report.size() == 3);
    std::string report;
    for (const std::string& line : all.report) report += line + "\n";
    for (const char* part : {"F16 loaded as f32", "I32 loaded as i64", "U8 loaded as i64"})
      CHECK(report.find(part) != std::string::npos);
  }

  TEST_CASE("a broken file is refused with the reason") {
    const Folder folder;
    const std::string a8 = entry("a", "[2]", "[0,8]");
    const std::string good = file("{" + entry("a", "[2,2]", "[0,16]") + "}", 16);
    const std::string nine = "[1,1,1,1,1,1,1,1,1]";
    const struct {
      std::string bytes;
      const char* reason;
    } rows[] = {
        {"1234567", "too few for a header"},
        {with_length(UINT64_MAX, "{}"), "a header of 18446744073709551615 bytes in a file of 10"},
        {with_length(200U << 20, std::string(1016, ' ')), "a header of 209715200 bytes in a file of 1024"},
        {file("{nonsense", 0), "not JSON at byte"},
        {file("[]", 0), "not a JSON object"},
        {file("", 0), "not a JSON object"},
        {file("{" + a8 + "} x", 8), "not JSON"},
        {file(std::string(1000, '{'), 0), "not JSON"},
        {file(R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8), "list where none belongs"},
        {file(R"({"a":{"dtype":{"b":1}}})", 8), "an object where none belongs"},
        {file(R"({"a":[1]})", 8), "a list where none belongs"},
        {file(R"({"a":{"dtype":[1]}})", 8), "a list where none belongs"},
        {file(R"({"a":{"dtype":7}})", 8), "a number where none belongs"},
        {file(R"({"a":{"dtype":null}})", 8), "null"},
        {file("{" + entry("a", "[1]", "[8,4]") + "}", 8), "data_offsets [8, 4]"},
        {file("{" + entry("a", "[2]", "[0,8,8]") + "}", 8), "data_offsets [0, 8, 8]"},
        {file("{" + entry("a", "[4]", "[0,16]") + "}", 8), "ends at byte 16 of 8"},
        {file("{" + entry("a", "[2,2]", "[0,12]") + "}", 12), "takes 16 bytes, its data_offsets [0, 12] span 12"},
        {file("{" + entry("a", "[4]", "[0,16]") + "," + entry("b", "[4]", "[8,24]") + "}", 24),
         "'b' begins at byte 8 of the data, inside"},
        {file("{" + entry("a", "[4]", "[0,16]") + "," + entry("b", "[1]", "[4,8]") + "}", 16),
         "'b' begins at byte 4 of the data, inside"},
        {file("{" + a8 + "," + entry("b", "[1]", "[12,16]") + "}", 16), "a hole of 4 bytes before 'b'"},
        {file("{" + a8 + "}", 12), "4 bytes after the last tensor"},
        {file("{" + a8 + "," + a8 + "}", 8), "the name 'a' twice"},
        {file(R"({"a":{"shape":[2],"shape":[2]}})", 8), "two shapes of 'a'"},
        {file(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "the metadata key 'k' twice"},
        {file(R"({"__metadata__":{"k":1}})", 0), "a number where none belongs"},
        {file("{" + entry("a", "[8589934592,8589934592]", "[0,8]") + "}", 8), "size overflows"},
        {file("{" + entry("a", "[0,18446744073709551615]", "[0,0]") + "}", 0), "size overflows"},
        {file("{" + entry("a", "[0,4294967296,4294967296]", "[0,0]") + "}", 0), "size overflows"},
        {file("{" + entry("a", nine, "[0,4]") + "}", 4), "more than 8 dims"},
        {file("{" + entry("a", "[2]", "[0,8]", "F12") + "}", 8), "'a' has dtype 'F12', which is not one of"},
        {file("{" + entry("a", "[2]", "[0,8]", "U32") + "}", 8), "'a' has dtype 'U32', which is not one of"},
        {file("{" + entry("a", "[2]", "[-8,0]") + "}", 8), "the negative number -8 in data_offsets of 'a'"},
        {file("{" + entry("a", "[2]", "[0.0,8]") + "}", 8), "the number 0.0 in data_offsets of 'a'"},
        {file("{" + entry("a", "[1e99999]", "[0,8]") + "}", 8), "not JSON"},
        {good.substr(0, good.size() / 2), "a header of"},
        {good.substr(0, good.size() - 8), "ends at byte 16 of 8"},
        {file("{" + entry("\xFF", "[2]", "[0,8]") + "}", 8), "not UTF-8"},
        {file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"stride":[1]}})", 8),
         "the unknown field 'stride' of 'a'"},
        {file(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "'a' has no shape"},
    };
    for (const auto& row : rows) {
      const std::string message = refusal(folder.write(row.bytes));
      CAPTURE(row.bytes);
      CAPTURE(message);
      CHECK(message.find(row.reason) != std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
    }
    // Cut anywhere or with any byte changed: an error or a load, never a crash.
    CHECK(refusal(folder.write(good)).empty());
    for (size_t n = 1; n < good.size(); ++n) CHECK(!refusal(folder.write(good.substr(0, n))).empty());
    for (size_t at = 0; at < good.size(); ++at)
      for (const int flip : {1, 8, 0x20, 0x80}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ flip);
        const std::string message = refusal(folder.write(bad));
        CHECK((message.empty() || message.starts_with("read_safetensors: ")));
      }
    CHECK_THROWS_AS(static_cast<void>(read_safetensors("/no/such/file")), IoError);
    CHECK_THROWS_AS(static_cast<void>(read_safetensors(folder.path.string())), IoError);
    CHECK_THROWS_AS(static_cast<void>(read_safetensors(folder.write(""))), IoError);
  }

  TEST_CASE("unusual files that keep the format load") {
    const Folder folder;
    const TensorFile empty_one = read_safetensors(folder.write(file("{" + entry("e", "[0,3]", "[0,0]") + "}", 0)));
    CHECK(empty_one.tensors.at("e").shape() == Shape{0, 3});
    CHECK(read_safetensors(folder.write(file("{" + entry("s", "[]", "[0,4]") + "}", 4))).tensors.at("s").dim() == 0);
    const std::string swapped =
        "{" + entry("b", "[1]", "[4,8]") + "," + entry("e", "[0]", "[4,4]") + "," + entry("a", "[1]", "[0,4]") + "}   ";
    CHECK(read_safetensors(folder.write(file(swapped, 8))).tensors.size() == 3);
    CHECK(read_safetensors(folder.write(file(R"({"__metadata__":{"k":"v"}})", 0))).metadata.at("k") == "v");
    CHECK(read_safetensors(folder.write(file("{}", 0))).tensors.empty());
  }

  TEST_CASE("what is written is read back bit for bit") {
    const Folder folder;
    const std::string path = (folder.path / "w.safetensors").string();
    const Tensor matrix = tensor<double>({{1, 2, 3}, {4, 5, 6}});
    std::map<std::string, Tensor> tensors = {
        {"mask", tensor<bool>({1, 0, 1})},
        {"half", tensor<bf16>({0.5, NAN, -INFINITY})},
        {"a.transposed", matrix.view_of({3, 2}, {1, 3}, 0)},
        {"a.stepped", matrix.view_of({2}, {-2}, 5)},
        {"ids", tensor<int64_t>({-7, 1e15})},
        {"none", zeros({0, 4})},
        {"scalar", scalar(-0.0)},
    };
    const std::map<std::string, std::string> metadata = {{"state", "{\"step\": 3}\n"}, {"grüße", "\xE2\x80\xA6"}};
    write_safetensors(path, tensors, metadata);
    const TensorFile back = read_safetensors(path);
    CHECK(back.metadata == metadata);
    REQUIRE(back.tensors.size() == tensors.size());
    for (const auto& named : tensors) {
      CAPTURE(named.first);
      const Tensor a = dense(named.second), b = back.tensors.at(named.first);
      REQUIRE(b.shape() == a.shape());
      REQUIRE(b.dtype() == a.dtype());
      CHECK((a.numel() == 0 ||
             std::memcmp(a.raw_data(), b.raw_data(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0));
    }
    CHECK(back.tensors.at("a.transposed").to_vector() == std::vector<float>{1, 4, 2, 5, 3, 6});

    const std::string bytes = bytes_of(path);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    CHECK((8 + length) % 64 == 0);
    const auto header = nlohmann::json::parse(bytes.substr(8, length));
    for (const auto& [name, t] : tensors)
      CHECK(header[name]["data_offsets"][0].get<int64_t>() % size_of(t.dtype()) == 0);
    write_safetensors(path, tensors, metadata);
    CHECK(bytes_of(path) == bytes);
  }

  TEST_CASE("a failed write leaves the old file and no other") {
    const Folder folder;
    const std::string path = (folder.path / "w.safetensors").string();
    write_safetensors(path, {{"a", ones({2})}});
    const std::string bytes = bytes_of(path);
    CHECK_THROWS_AS(write_safetensors(path, {{"\xFF", ones({2})}}), ValueError);
    CHECK_THROWS_AS(write_safetensors(path, {{"a", Tensor{}}}), ValueError);
    CHECK_THROWS_AS(write_safetensors(path, {{"__metadata__", ones({2})}}), ValueError);
    {
      AtomicFile abandoned(path);
      abandoned.write("half", 4);
      CHECK(folder.files() == 2);
    }
    CHECK(bytes_of(path) == bytes);
    CHECK(folder.files() == 1);
    std::filesystem::create_directory(folder.path / "d");
    CHECK_THROWS_AS(write_safetensors((folder.path / "d").string(), {{"a", ones({2})}}), IoError);
    CHECK_THROWS_AS(write_safetensors((folder.path / "missing" / "x").string(), {{"a", ones({2})}}), IoError);
    CHECK(folder.files() == 2);
  }
}
