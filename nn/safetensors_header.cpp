// The parser of the header: JSON events one at a time, so that neither depth nor a duplicate key of a hostile file gets
// past. Not here: the data (safetensors.cpp).
#include "safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "../autograd/error.h"

namespace tapestry::detail {
namespace {

constexpr uint64_t max_header = 100'000'000;  // the format's own limit

constexpr FileType types[] = {
    {"F64", 8, DType::f64}, {"F32", 4, DType::f32}, {"F16", 2, DType::f32}, {"BF16", 2, DType::bf16},
    {"I64", 8, DType::i64}, {"I32", 4, DType::i64}, {"U8", 1, DType::i64},  {"BOOL", 1, DType::boolean},
};

struct RawEntry {
  std::string name;
  std::string dtype;
  std::optional<std::vector<uint64_t>> shape, offsets;
};

/// Receives the events of `{"name": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"k":
/// "v"}}` and refuses all others.
class Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::deque<RawEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string fault;

  bool start_object(size_t) override {
    if (depth_ == 2 || list_ != nullptr) return refuse("an object where none belongs");
    return ++depth_, true;
  }
  bool end_object() override { return --depth_, true; }
  bool key(string_t& k) override {
    if (depth_ == 1) {
      if (!names_.insert(k).second) return refuse(fmt::format("the name '{}' twice", k));
      in_metadata_ = k == "__metadata__";
      if (!in_metadata_) entries.push_back({k, {}, {}, {}});
      return true;
    }
    field_ = k;
    if (in_metadata_) return metadata.try_emplace(k).second || refuse(fmt::format("the metadata key '{}' twice", k));
    const RawEntry& e = entries.back();
    if (k == "dtype") return e.dtype.empty() || refuse(fmt::format("two dtypes of '{}'", e.name));
    if (k == "shape") return !e.shape || refuse(fmt::format("two shapes of '{}'", e.name));
    if (k == "data_offsets") return !e.offsets || refuse(fmt::format("two data_offsets of '{}'", e.name));
    return refuse(fmt::format("the unknown field '{}' of '{}'", k, e.name));
  }
  bool string(string_t& s) override {
    if (depth_ != 2 || list_ != nullptr) return refuse("a string where none belongs");
    if (in_metadata_) return metadata[field_] = s, true;
    if (field_ != "dtype") return refuse(fmt::format("a string as {} of '{}'", field_, entries.back().name));
    return entries.back().dtype = s, true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || list_ != nullptr || field_ == "dtype")
      return refuse("a list where none belongs");
    list_ = &(field_ == "shape" ? entries.back().shape : entries.back().offsets).emplace();
    return true;
  }
  bool end_array() override { return list_ = nullptr, true; }
  bool number_unsigned(number_unsigned_t n) override {
    if (list_ == nullptr) return refuse("a number where none belongs");
    if (list_->size() == max_rank)
      return refuse(fmt::format("'{}' with more than {} dims", entries.back().name, max_rank));
    return list_->push_back(n), true;
  }
  bool number_integer(number_integer_t n) override {
    return refuse(fmt::format("the negative number {}{}", n, where()));
  }
  bool number_float(number_float_t, const string_t& s) override {
    return refuse(fmt::format("the number {}{}, which is no integer", s, where()));
  }
  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a boolean"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    const std::string_view text = e.what();
    const bool utf8 = text.find("UTF-8") != std::string_view::npos;
    return fault = fmt::format("the header is not {} at byte {}", utf8 ? "UTF-8" : "JSON", at), false;
  }

 private:
  bool refuse(const std::string& what) { return fault = "the header has " + what, false; }
  [[nodiscard]] std::string where() const {
    return entries.empty() ? "" : fmt::format(" in {} of '{}'", field_, entries.back().name);
  }

  int depth_ = 0;
  bool in_metadata_ = false;
  std::string field_;
  std::set<std::string> names_;
  std::vector<uint64_t>* list_ = nullptr;
};

/// Number of bytes a tensor of this shape takes; nothing when that number, or that of its sizes other than 0, does not
/// fit in 63 bits (numel() in shape.h has the same rule).
std::optional<uint64_t> byte_count(const std::vector<uint64_t>& shape, uint64_t width) {
  uint64_t product = width;
  bool empty = false;
  for (const uint64_t n : shape) {
    empty = empty || n == 0;
    if (n > INT64_MAX / product) return {};
    if (n != 0) product *= n;
  }
  return empty ? 0 : product;
}

std::string to_text(const std::vector<uint64_t>& numbers) {
  std::string text;
  for (const uint64_t n : numbers) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return "[" + text + "]";
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view bytes, const std::string& file) {
  const auto reject = [&](const std::string& why) {
    fail<FormatError>("read_safetensors: '{}': {}; the file is damaged or not safetensors", file, why);
  };
  if (bytes.size() < 8) reject(fmt::format("{} bytes are too few for a header", bytes.size()));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = (length << 8) | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  if (length > bytes.size() - 8) reject(fmt::format("a header of {} bytes in a file of {}", length, bytes.size()));
  if (length > max_header) reject(fmt::format("a header of {} bytes, the format allows {}", length, max_header));
  const std::string_view header = bytes.substr(8, length), data = bytes.substr(8 + length);
  if (!header.starts_with('{')) reject("the header is not a JSON object");

  Events events;
  if (!nlohmann::json::sax_parse(header, &events)) reject(events.fault);
  SafetensorsHeader result;
  result.metadata = std::move(events.metadata);
  for (RawEntry& e : events.entries) {
    for (const auto& [missing, field] :
         {std::pair{e.dtype.empty(), "dtype"}, {!e.shape, "shape"}, {!e.offsets, "data_offsets"}})
      if (missing) reject(fmt::format("'{}' has no {}", e.name, field));
    const auto* type =
        std::find_if(std::begin(types), std::end(types), [&](const FileType& t) { return t.name == e.dtype; });
    if (type == std::end(types)) {
      fail<FormatError>(
          "read_safetensors: '{}': '{}' has dtype '{}', which is not one of F64, F32, F16, BF16, I64, I32, U8, BOOL; "
          "convert it first",
          file, e.name, e.dtype);
    }
    if (e.offsets->size() != 2 || (*e.offsets)[0] > (*e.offsets)[1])
      reject(fmt::format("'{}' has data_offsets {}, not [begin, end]", e.name, to_text(*e.offsets)));
    const uint64_t begin = (*e.offsets)[0], end = (*e.offsets)[1];
    if (end > data.size()) reject(fmt::format("'{}' ends at byte {} of {} bytes of data", e.name, end, data.size()));
    const auto wanted = byte_count(*e.shape, type->width);
    if (!wanted) reject(fmt::format("'{}' has shape {}, whose size overflows", e.name, to_text(*e.shape)));
    if (*wanted != end - begin)
      reject(fmt::format("'{}' of shape {} {} takes {} bytes, its data_offsets {} span {}", e.name, to_text(*e.shape),
                         type->name, *wanted, to_text(*e.offsets), end - begin));
    Shape shape;
    for (const uint64_t n : *e.shape) shape.push_back(static_cast<int64_t>(n));
    result.entries.push_back({std::move(e.name), type, shape, data.substr(begin, end - begin)});
  }

  const auto ends = [](const TensorEntry& e) { return std::pair{e.data.data(), e.data.data() + e.data.size()}; };
  std::sort(result.entries.begin(), result.entries.end(),
            [&](const auto& a, const auto& b) { return ends(a) < ends(b); });
  const char* at = data.data();
  for (const TensorEntry& e : result.entries) {
    const auto [begin, end] = ends(e);
    if (begin < at)
      reject(
          fmt::format("'{}' begins at byte {} of the data, inside the tensor before it", e.name, begin - data.data()));
    if (begin > at) reject(fmt::format("a hole of {} bytes before '{}'", begin - at, e.name));
    at = end;
  }
  if (const auto left = data.data() + data.size() - at; left != 0)
    reject(fmt::format("{} bytes after the last tensor", left));
  return result;
}

}  // namespace tapestry::detail
