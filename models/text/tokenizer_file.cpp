// Tokenizers from files: a tokenizer.json, or GPT-2's vocab.json and merges.txt, and the names of bos and eos beside them.
// Not here: what a tokenizer.json may hold (tokenizer_json.h).
// Next: ../../tests/test_tokenizer.cpp.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../../autograd/error.h"
#include "../../nn/mapped_file.h"
#include "../strict_json.h"
#include "byte_alphabet.h"
#include "json_fields.h"
#include "tokenizer_json.h"

namespace tapestry {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string read(const fs::path& path) { return std::string(MappedFile(path.string()).bytes()); }

/// A token as a tokenizer_config.json names it: a text, or an object with its content.
std::string token_name(const Json& config, const char* name) {
  const auto it = config.find(name);
  if (it == config.end() || it->is_null()) return "";
  if (it->is_object() && it->contains("content")) return json_text(name, (*it)["content"]);
  return json_text(name, *it);
}

struct Names {
  std::string bos, eos;
};

Names names_beside(const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  if (!fs::exists(path)) return {};
  const Json config = parse_strict_json_by_name("tokenizer_config", read(path));
  if (!config.is_object()) fail<FormatError>("tokenizer: '{}' is no JSON object", path.string());
  return {token_name(config, "bos_token"), token_name(config, "eos_token")};
}

std::string bytes_of(const std::string& name, const std::string& where) {
  auto bytes = from_byte_alphabet(name);
  if (!bytes) fail<FormatError>("tokenizer: '{}' in {} is not written in GPT-2's alphabet of bytes", name, where);
  return *std::move(bytes);
}

std::string from_gpt2_files(const fs::path& vocab_path, const fs::path& merges_path, const Names& names) {
  const Json vocab = parse_strict_json_by_name("tokenizer", read(vocab_path));
  if (!vocab.is_object()) fail<FormatError>("tokenizer: '{}' is no JSON object", vocab_path.string());
  ByteLevelVocabulary v;
  v.tokens.resize(vocab.size());
  std::vector<bool> seen(vocab.size());
  for (const auto& [name, id] : vocab.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= static_cast<int64_t>(vocab.size()) ||
        seen[id.get<size_t>()])
      fail<FormatError>("tokenizer: '{}' gives '{}' an id that is not its place among {}", vocab_path.string(), name,
                        vocab.size());
    seen[id.get<size_t>()] = true;
    const bool special = name == "<|endoftext|>" || name == names.bos || name == names.eos;
    if (special) v.special.push_back(id.get<int32_t>());
    v.tokens[id.get<size_t>()] = special ? name : bytes_of(name, vocab_path.string());
  }
  const std::string merges = read(merges_path);
  for (size_t at = 0, line = 1; at < merges.size(); ++line) {
    const size_t end = std::min(merges.find('\n', at), merges.size());
    std::string text = merges.substr(at, end - at);
    at = end + 1;
    if (text.ends_with('\r')) text.pop_back();
    if (text.empty() || (line == 1 && text.starts_with("#version"))) continue;
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      fail<FormatError>("tokenizer: line {} of '{}' is not two texts with a space between them", line,
                        merges_path.string());
    v.merges.emplace_back(bytes_of(text.substr(0, space), merges_path.string()),
                          bytes_of(text.substr(space + 1), merges_path.string()));
  }
  return write_tokenizer_json(v);
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path) {
  const fs::path given(path);
  std::error_code ignored;
  const fs::path folder = fs::is_directory(given, ignored) ? given : given.parent_path();
  const fs::path file = folder == given ? given / "tokenizer.json" : given;
  const Names names = names_beside(folder);
  const fs::path vocab = folder / "vocab.json", merges = folder / "merges.txt";
  const bool gpt2 =
      folder == given && !fs::exists(file, ignored) && fs::exists(vocab, ignored) && fs::exists(merges, ignored);
  if (folder == given && !gpt2 && !fs::exists(file, ignored))
    fail<IoError>("tokenizer: '{}' holds neither a tokenizer.json nor vocab.json and merges.txt", path);
  std::string text = gpt2 ? from_gpt2_files(vocab, merges, names) : read(file);
  try {
    return parse_tokenizer_json(std::move(text), names.bos, names.eos);
  } catch (const FormatError& e) {
    fail<FormatError>("{}; in '{}'", e.what(), (gpt2 ? vocab : file).string());
  }
}

}  // namespace tapestry
