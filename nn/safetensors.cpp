// Reading: the bytes of checked entries become tensors. Writing: header first, then every tensor in order of width and
// name. Not here: checking a header (safetensors_header.cpp).
#include "safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "../autograd/error.h"
#include "atomic_file.h"
#include "mapped_file.h"
#include "safetensors_header.h"

namespace tapestry {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian; a big-endian machine must swap bytes here");

float half_to_float(uint16_t h) {
  const int exponent = (h >> 10) & 0x1F, mantissa = h & 0x3FF;
  const float sign = (h & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31)
    return std::bit_cast<float>((static_cast<uint32_t>(h & 0x8000) << 16) | 0x7F800000U |
                                (static_cast<uint32_t>(mantissa) << 13));
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

/// Elements of From, which may lie unaligned, through `convert` into the new tensor.
template <class From, class To, class F>
void convert_elements(std::string_view from, void* to, F&& convert) {
  for (size_t i = 0; i < from.size() / sizeof(From); ++i) {
    From x;
    std::memcpy(&x, from.data() + i * sizeof(From), sizeof(From));
    static_cast<To*>(to)[i] = convert(x);
  }
}

Tensor load(const detail::TensorEntry& e) {
  Tensor t = empty(e.shape, e.type->loaded);
  if (t.numel() == 0) return t;
  void* to = t.mutable_raw_data("read_safetensors");
  const auto widen = [](auto x) { return static_cast<int64_t>(x); };
  if (e.type->name == "F16")
    convert_elements<uint16_t, float>(e.data, to, half_to_float);
  else if (e.type->name == "I32")
    convert_elements<int32_t, int64_t>(e.data, to, widen);
  else if (e.type->name == "U8")
    convert_elements<uint8_t, int64_t>(e.data, to, widen);
  else if (e.type->name == "BOOL")
    convert_elements<uint8_t, bool>(e.data, to, [](uint8_t x) { return x != 0; });
  else
    std::memcpy(to, e.data.data(), e.data.size());
  return t;
}

std::string_view file_name_of(DType t) {
  constexpr std::string_view names[] = {"F32", "F64", "BF16", "I64", "BOOL"};
  return names[static_cast<int>(t)];
}

}  // namespace

TensorFile read_safetensors(const std::string& path) {
  const MappedFile mapped(path);
  detail::SafetensorsHeader header = detail::parse_safetensors_header(mapped.bytes(), path);
  TensorFile file;
  file.metadata = std::move(header.metadata);
  for (const detail::TensorEntry& e : header.entries) {
    file.tensors.emplace(e.name, load(e));
    if (e.type->name != file_name_of(e.type->loaded))
      file.report.push_back(fmt::format("{}: {} loaded as {}", e.name, e.type->name, name_of(e.type->loaded)));
  }
  return file;
}

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& named : tensors) {
    if (named.first == "__metadata__")
      fail<ValueError>("write_safetensors: the format reserves the name '__metadata__'; rename the tensor");
    if (!named.second.defined()) fail<ValueError>("write_safetensors: '{}' is undefined; leave it out", named.first);
    order.push_back(&named);
  }
  // Without holes, wide elements first is what keeps every tensor aligned.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return size_of(a->second.dtype()) > size_of(b->second.dtype());
  });

  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t at = 0;
  for (const auto* named : order) {
    const Tensor& t = named->second;
    const int64_t end = at + t.numel() * size_of(t.dtype());
    header[named->first] = {{"dtype", file_name_of(t.dtype())},
                            {"shape", std::vector<int64_t>(t.shape().begin(), t.shape().end())},
                            {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    fail<ValueError>("write_safetensors: a name or metadata text is not UTF-8; encode it");
  }
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');  // the data begins at a multiple of 64

  AtomicFile file(path);
  const uint64_t length = text.size();
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (const auto* named : order) {
    const Tensor whole = dense(named->second);
    file.write(whole.raw_data(), static_cast<size_t>(whole.numel() * size_of(whole.dtype())));
  }
  file.commit();
}

}  // namespace tapestry
