// `tapestry tokenizer`: makes a vocabulary, and turns text to ids and back.
// Not here: what a tokenizer does (../text/tokenizer.h).
// Next: ../text/bpe_trainer.h.
#include "../text/tokenizer.h"

#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>

#include "../../autograd/error.h"
#include "../../nn/atomic_file.h"
#include "../../nn/mapped_file.h"
#include "../text/bpe_trainer.h"
#include "program.h"

namespace tapestry::programs {
namespace {

/// A file, or the standard input for "", in pieces.
class Input {
 public:
  explicit Input(const std::string& path) : path_(path), file_(path.empty() ? stdin : std::fopen(path.c_str(), "rb")) {
    if (file_ == nullptr) fail<IoError>("tokenizer: cannot read '{}'", path);
  }
  ~Input() {
    if (file_ != stdin) std::fclose(file_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// The next bytes; none at the end.
  std::string_view next() {
    const size_t n = std::fread(bytes_.data(), 1, bytes_.size(), file_);
    if (n == 0 && std::ferror(file_) != 0)
      fail<IoError>("tokenizer: cannot read {}", path_.empty() ? "the standard input" : "'" + path_ + "'");
    return {bytes_.data(), n};
  }

 private:
  std::string path_;
  std::FILE* file_;
  std::string bytes_ = std::string(size_t{1} << 16, '\0');
};

void put(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
    fail<IoError>("tokenizer: cannot write to the standard output");
}

struct Options {
  std::string tokenizer, data, out = "tokenizer.json";
  EncodeOptions encode;
  BpeTrainOptions train;
};

void train(const Options& o) {
  const MappedFile file(o.data);
  const auto start = std::chrono::steady_clock::now();
  const ByteLevelVocabulary v = train_bpe(file.bytes(), o.train);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto tokenizer = parse_tokenizer_json(write_tokenizer_json(v));
  write_file_atomically(o.out, tokenizer->tokenizer_json());
  const size_t tokens = tokenizer->encode(file.bytes(), {.parse_special = true}).size();
  fmt::print("{}: {} tokens (256 bytes, {} merged, {} special) from {} bytes in {:.2f} s; {:.3f} bytes a token\n",
             o.out, v.tokens.size(), v.tokens.size() - 256 - v.special.size(), v.special.size(), file.bytes().size(),
             seconds.count(), static_cast<double>(file.bytes().size()) / static_cast<double>(tokens));
  if (static_cast<int64_t>(v.tokens.size()) < o.train.vocab_size)
    fmt::print("no pair was left to merge, so there are fewer than the {} asked for\n", o.train.vocab_size);
}

void encode(const Options& o) {
  const auto tokenizer = read_tokenizer(o.tokenizer);
  EncodeStream stream(*tokenizer, o.encode);
  bool first = true;
  const auto print = [&](const std::vector<int32_t>& ids) {
    std::string text;
    for (const int32_t id : ids) text += fmt::format("{}{}", std::exchange(first, false) ? "" : " ", id);
    put(text);
  };
  Input input(o.data);
  for (std::string_view bytes = input.next(); !bytes.empty(); bytes = input.next()) print(stream.push(bytes));
  print(stream.flush());
  put("\n");
}

void decode(const Options& o) {
  const auto tokenizer = read_tokenizer(o.tokenizer);
  DecodeState state;
  std::string word;
  const auto take = [&] {
    if (word.empty()) return;
    int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      fail<ValueError>("decode: '{}' is not an id; ids are whole numbers with white space between them", word);
    std::string bytes;
    tokenizer->decode_next(id, state, bytes);
    put(bytes);
    word.clear();
  };
  Input input(o.data);
  for (std::string_view bytes = input.next(); !bytes.empty(); bytes = input.next())
    for (const char c : bytes) std::isspace(static_cast<unsigned char>(c)) != 0 ? take() : word.push_back(c);
  take();
}

}  // namespace

void add_tokenizer(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenizer", "make a vocabulary; text to ids and back");
  command->require_subcommand(1);
  const auto o = std::make_shared<Options>();

  CLI::App* make = command->add_subcommand("train", "make a byte-level BPE vocabulary from a text");
  make->add_option("--data", o->data, "text to make it from")->type_name("FILE")->required();
  make->add_option("--vocab-size", o->train.vocab_size, "256 bytes, merges and special tokens together")
      ->type_name("N")
      ->required();
  make->add_option("--special", o->train.special, "text of a special token, such as <|endoftext|>; may be repeated")
      ->type_name("TEXT");
  make->add_option("--pattern", o->train.pattern, "expression whose matches are the pieces; without it, GPT-2's")
      ->type_name("REGEX");
  make->add_option("--out", o->out, "file to write")->type_name("FILE")->capture_default_str();
  add_threads_option(*make);
  make->callback([o] { train(*o); });

  const auto add_common = [&o](CLI::App* c, const char* data) {
    c->add_option("--tokenizer", o->tokenizer, "tokenizer.json, or a folder with one or with vocab.json and merges.txt")
        ->type_name("FILE")
        ->required();
    c->add_option("--data", o->data, data)->type_name("FILE");
  };
  CLI::App* to_ids = command->add_subcommand("encode", "print the ids of a text");
  add_common(to_ids, "text to encode; without it, the standard input");
  to_ids->add_flag("--special", o->encode.parse_special, "text of special tokens becomes their ids");
  to_ids->add_flag("--add-special", o->encode.add_special, "add what the tokenizer puts around a text, such as bos");
  to_ids->callback([o] { encode(*o); });

  CLI::App* to_text = command->add_subcommand("decode", "write the bytes of ids");
  add_common(to_text, "ids with white space between them; without it, the standard input");
  to_text->callback([o] { decode(*o); });
}

}  // namespace tapestry::programs
