// Reading: the bytes of checked entries become tensors. Writing: header first, then every tensor in order of width and
// name. Not here: checking a header (safetensors_header.cpp).
#include "safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "../autograd/error.h"
#include "../ops/ops.h"
#include "atomic_file.h"
#include "float16.h"
#include "mapped_file.h"
#include "safetensors_header.h"

namespace tapestry {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian; a big-endian machine must swap bytes here");

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

/// dtypes of a file that can be written, and what a tensor is converted to first.
DType held_as(const TensorToWrite& t) {
  constexpr std::pair<std::string_view, DType> types[] = {{"F32", DType::f32},   {"F64", DType::f64},
                                                          {"BF16", DType::bf16}, {"F16", DType::f32},
                                                          {"I64", DType::i64},   {"BOOL", DType::boolean}};
  for (const auto& [name, dtype] : types)
    if (name == t.dtype) return dtype;
  fail<ValueError>("write_safetensors: '{}' cannot be written as '{}'; choose F32, F64, BF16, F16, I64 or BOOL", t.name,
                   t.dtype);
}
int64_t width_of(const TensorToWrite& t) { return t.dtype == "F16" ? 2 : size_of(held_as(t)); }

Tensor made(const TensorToWrite& t) {
  Tensor x = t.make();
  const DType dtype = held_as(t);
  const bool same_kind = x.defined() && (x.dtype() == dtype || (is_floating(x.dtype()) && is_floating(dtype)));
  if (!same_kind || x.shape() != t.shape)
    fail<ValueError>("write_safetensors: '{}' is {}; it was announced as {} of shape {}", t.name, x.describe(), t.dtype,
                     to_string(t.shape));
  return dense(x.dtype() == dtype ? x : to(x.detach(), dtype));
}

void write_data(AtomicFile& file, const TensorToWrite& t) {
  const Tensor x = made(t);
  const auto n = static_cast<size_t>(x.numel());
  if (t.dtype != "F16") return file.write(x.raw_data(), n * static_cast<size_t>(width_of(t)));
  const float* from = x.data<float>();
  std::vector<uint16_t> halves(n);
  for (size_t i = 0; i < n; ++i) {
    halves[i] = float_to_half(from[i]);
    if ((halves[i] & 0x7FFFU) == 0x7C00U && std::isfinite(from[i]))
      fail<ValueError>("write_safetensors: '{}' holds {}, beyond F16's largest number 65504; choose BF16 or F32",
                       t.name, from[i]);
  }
  file.write(halves.data(), n * sizeof(uint16_t));
}

}  // namespace

struct SafetensorsFile::State {
  std::string path;
  MappedFile mapped;
  detail::SafetensorsHeader header;
  std::map<std::string_view, const detail::TensorEntry*> by_name;

  explicit State(const std::string& p)
      : path(p), mapped(p), header(detail::parse_safetensors_header(mapped.bytes(), p)) {
    for (const detail::TensorEntry& e : header.entries) by_name.emplace(e.name, &e);
  }
  [[nodiscard]] const detail::TensorEntry& at(const std::string& name) const {
    const auto it = by_name.find(name);
    if (it == by_name.end()) fail<FormatError>("read_safetensors: '{}' has no tensor '{}'", path, name);
    return *it->second;
  }
};

SafetensorsFile::SafetensorsFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> list;
  for (const auto& [name, entry] : state_->by_name) list.emplace_back(name);
  return list;
}
bool SafetensorsFile::contains(const std::string& name) const { return state_->by_name.contains(name); }
std::string_view SafetensorsFile::dtype(const std::string& name) const { return state_->at(name).type->name; }
const Shape& SafetensorsFile::shape(const std::string& name) const { return state_->at(name).shape; }
Tensor SafetensorsFile::read(const std::string& name) const { return load(state_->at(name)); }

std::string_view file_dtype(DType t) {
  constexpr std::string_view names[] = {"F32", "F64", "BF16", "I64", "BOOL"};
  return names[static_cast<int>(t)];
}

TensorFile read_safetensors(const std::string& path) {
  const MappedFile mapped(path);
  detail::SafetensorsHeader header = detail::parse_safetensors_header(mapped.bytes(), path);
  TensorFile file;
  file.metadata = std::move(header.metadata);
  for (const detail::TensorEntry& e : header.entries) {
    file.tensors.emplace(e.name, load(e));
    if (e.type->name != file_dtype(e.type->loaded))
      file.report.push_back(fmt::format("{}: {} loaded as {}", e.name, e.type->name, name_of(e.type->loaded)));
  }
  return file;
}

void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorToWrite*> order;
  std::set<std::string_view> names = {"__metadata__"};
  for (const TensorToWrite& t : tensors) {
    if (t.name == "__metadata__")
      fail<ValueError>("write_safetensors: the format reserves the name '__metadata__'; rename the tensor");
    if (!names.insert(t.name).second) fail<ValueError>("write_safetensors: '{}' is given twice", t.name);
    order.push_back(&t);
  }
  // Without holes, wide elements first is what keeps every tensor aligned.
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return width_of(*a) > width_of(*b); });

  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t at = 0;
  for (const TensorToWrite* t : order) {
    const int64_t end = at + numel(t->shape) * width_of(*t);
    header[t->name] = {{"dtype", t->dtype},
                       {"shape", std::vector<int64_t>(t->shape.begin(), t->shape.end())},
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
  for (const TensorToWrite* t : order) write_data(file, *t);
  file.commit();
}

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorToWrite> list;
  for (const auto& named : tensors) {
    const Tensor& t = named.second;
    if (!t.defined()) fail<ValueError>("write_safetensors: '{}' is undefined; leave it out", named.first);
    list.push_back({named.first, file_dtype(t.dtype()), t.shape(), [&t] { return t; }});
  }
  write_safetensors(path, list, metadata);
}

}  // namespace tapestry
