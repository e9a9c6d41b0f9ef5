// Tokenizer files of every supported kind give the ids they describe; what is damaged or not supported is refused by name.
// Not here: the ids of published tokenizers (test_bpe.cpp).
// Next: ../models/text/tokenizer_parts.h.
#include <doctest/doctest.h>

#include <array>
#include <random>

#include "../autograd/error.h"
#include "../models/text/bpe_trainer.h"
#include "../models/text/regex.h"
#include "../models/text/tokenizer_json.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;

namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  REQUIRE_MESSAGE(at != std::string::npos, what);
  return text.replace(at, what.size(), by);
}

/// A byte-level file with the bytes, " a", "ab" and the special token <s>, with a text in it replaced.
std::string byte_level(std::string_view what = "", std::string_view by = "") {
  const std::string text =
      write_tokenizer_json(train_bpe("ab ab a a a", {.vocab_size = 259, .special = {"<s>"}, .pattern = {}}));
  return what.empty() ? text : replaced(text, what, by);
}

/// A file of characters with byte fallback: 0 <unk>, 1 <s>, 2 </s>, 3 … 258 bytes, then characters and merges.
std::string characters(const std::string& parts) {
  std::string vocab = R"("<unk>": 0, "<s>": 1, "</s>": 2)";
  for (int b = 0; b < 256; ++b) vocab += fmt::format(", \"<0x{:02X}>\": {}", b, b + 3);
  int32_t id = 259;
  for (const char* token : {"▁", "a", "b", "▁a", "ab", "▁ab", "▁▁"}) vocab += fmt::format(", \"{}\": {}", token, id++);
  return fmt::format(R"({{"version": "1.0", "added_tokens": [
      {{"id": 1, "content": "<s>", "special": true, "normalized": false}},
      {{"id": 266, "content": "<x>", "special": false, "normalized": false}}],
    {}, "model": {{"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
    "vocab": {{{}}}, "merges": ["▁ a", "a b", "▁a b", "▁ ab", "▁ ▁"]}}}})",
                     parts, vocab);
}

constexpr const char* llama2 = R"("normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
  "pre_tokenizer": null,
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
constexpr const char* gemma = R"("normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
  "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}]})";
constexpr const char* mistral = R"("normalizer": null,
  "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false},
  "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";

Texts pieces_of(const PreTokenizer& p, std::string_view text) {
  Texts pieces;
  PreTokenizer::Scratch scratch(p);
  auto take = [&](std::string_view piece) { pieces.emplace_back(piece); };
  p.run(text, true, scratch, take);
  return pieces;
}

}  // namespace

TEST_SUITE("tokenizer_files") {
  TEST_CASE("vocabularies of characters with byte fallback") {
    struct Row {
      const char* parts;
      std::string text;
      Ids ids;
    };
    const int32_t e = 3 + 0xC3, acute = 3 + 0xA9;
    const Row rows[] = {
        {llama2, "ab a", {264, 262}},                   // ▁ab ▁a
        {llama2, " a", {259, 262}},                     // ▁a comes before ▁▁
        {llama2, "aé\xFF", {262, e, acute, 3 + 0xFF}},  // characters and bytes that the vocabulary lacks
        {llama2, "a<x>b", {262, 266, 259, 261}},        // the text after an added token begins with ▁, too
        {gemma, "ab a", {263, 262}},
        {gemma, "  a", {259, 262}},
        {mistral, "ab a", {264, 262}},
        {mistral, "a<x>b", {262, 266, 261}},  // only the beginning of all has it
    };
    for (const Row& row : rows) {
      CAPTURE(row.text);
      const auto t = parse_tokenizer_json(characters(row.parts));
      CHECK(t->vocab_size() == 267);
      CHECK(t->encode(row.text) == row.ids);
      CHECK(t->decode(t->encode(row.text)) == row.text);
    }
    const auto t = parse_tokenizer_json(characters(llama2), "<s>", "</s>");
    CHECK(t->encode("a", {.add_special = true}) == Ids{1, 262});
    CHECK(t->encode("", {.add_special = true}) == Ids{1});
    CHECK(t->decode(Ids{1, 262}) == "<s>a");
    CHECK(t->bos_id() == 1);
    CHECK(t->eos_id() == 2);
    DecodeStream stream(*t, Ids{1, 262});  // the space of a later token is no prefix
    CHECK(stream.push(262) == " a");
    CHECK_THROWS_AS(parse_tokenizer_json(characters(llama2), "<bos>"), FormatError);
  }

  TEST_CASE("any bytes go through characters, too") {
    std::mt19937 random(1);
    for (const char* parts : {llama2, gemma, mistral}) {
      const auto t = parse_tokenizer_json(characters(parts));
      for (int i = 0; i < 500; ++i) {
        std::string text;
        for (auto n = random() % 20; n > 0; --n)
          text += random() % 2 == 0 ? std::string(1, static_cast<char>(random())) : std::string(1, " ab"[random() % 3]);
        if (parts == mistral && text.starts_with(' ')) continue;  // that file's own prefix is lost in such a text
        CHECK(t->decode(t->encode(text)) == text);
      }
    }
  }

  TEST_CASE("added tokens: longest first, words, white space, normalized text") {
    const auto with = [](const std::string& tokens) {
      return parse_tokenizer_json(byte_level("\"added_tokens\": [", "\"added_tokens\": [" + tokens + ","));
    };
    const auto longest = with(R"({"id": 300, "content": "<s>b", "normalized": false},
        {"id": 301, "content": "<", "normalized": false})");
    CHECK(longest->vocab_size() == 302);
    CHECK(longest->encode("<s>b<s>", {.parse_special = true}) == Ids{300, 258});
    CHECK(longest->encode("<s>") == Ids{301, 's', '>'});  // <s> is special and not asked for
    const auto word = with(R"({"id": 300, "content": "xy", "single_word": true, "normalized": false})");
    CHECK(word->encode("xy!xyz") == Ids{300, '!', 'x', 'y', 'z'});
    CHECK(word->encode("éxy") == Ids{0xC3, 0xA9, 'x', 'y'});
    const auto strips = with(R"({"id": 300, "content": "<m>", "lstrip": true, "rstrip": true, "normalized": false})");
    CHECK(strips->encode("b \u00a0<m>\t\n c") == Ids{'b', 300, 'c'});
    const auto normal = parse_tokenizer_json(replaced(
        byte_level("\"added_tokens\": [", R"("added_tokens": [{"id": 300, "content": "q", "normalized": true},)"),
        "\"normalizer\": null", R"("normalizer": {"type": "Replace", "pattern": {"Regex": "x+"}, "content": "q"})"));
    CHECK(normal->encode("bxxqb") == Ids{'b', 300, 300, 'b'});
  }

  TEST_CASE("pre-tokenizers cut as their names say") {
    using Behavior = SplitStep::Behavior;
    const auto cut = [](Behavior behavior, std::string_view text = "How are you doing?") {
      return pieces_of(PreTokenizer({SplitStep{Regex(R"(\w+|[^\w\s]+)"), behavior, true}}), text);
    };
    CHECK(cut(Behavior::removed) == Texts{"How", "are", "you", "doing", "?"});
    CHECK(cut(Behavior::isolated) == Texts{"How", " ", "are", " ", "you", " ", "doing", "?"});
    CHECK(cut(Behavior::merged_with_previous) == Texts{"How ", "are ", "you ", "doing", "?"});
    CHECK(cut(Behavior::merged_with_next) == Texts{"How", " are", " you", " doing", "?"});
    CHECK(cut(Behavior::contiguous) == Texts{"How", " ", "are", " ", "you", " ", "doing?"});
    CHECK(pieces_of(PreTokenizer({SplitStep{Regex("x*")}}), "abxxc") == Texts{"a", "b", "xx", "c"});
    CHECK(pieces_of(PreTokenizer({SplitStep{Regex("b")}}), "ab\xFF\xE2\x80z") ==
          Texts{"a", "b", "\xFF", "\xE2\x80", "z"});
    CHECK(pieces_of(PreTokenizer({MetaspaceStep{"_", MetaspaceStep::Prepend::always, true}}), "Hey  you") ==
          Texts{"_Hey", "_", "_you"});
    CHECK(pieces_of(PreTokenizer({MetaspaceStep{"_", MetaspaceStep::Prepend::never, false}}), "a b") == Texts{"a_b"});

    const auto ids = [](std::string_view pre_tokenizers, std::string_view text) {
      const std::string old = R"("pre_tokenizer": {
  "type": "ByteLevel",
  "add_prefix_space": false,
  "trim_offsets": true,
  "use_regex": true
 })";
      return parse_tokenizer_json(byte_level(old, fmt::format("\"pre_tokenizer\": {}", pre_tokenizers)))->encode(text);
    };
    const char* digits = R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})";
    CHECK(ids(digits, "ab12") == Ids{257, '1', '2'});
    CHECK(ids(R"({"type": "ByteLevel", "add_prefix_space": true})", "ab") == Ids{256, 'b'});
    CHECK(ids(R"({"type": "ByteLevel", "add_prefix_space": true})", " ab") == Ids{256, 'b'});
  }

  TEST_CASE("expressions mean what they mean in the libraries they were written for") {
    const auto finds = [](const char* pattern, std::string_view text) {
      return RegexMatcher(Regex(pattern)).find(text, 0).kind == RegexMatch::Kind::found;
    };
    for (const char* space :
         {" ", "\t", "\n", "\v", "\f", "\r", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u3000"})
      CHECK(finds(R"(\s)", space));
    CHECK_FALSE(finds(R"(\s)", "\u180e"));  // no white space since Unicode 6.3
    CHECK_FALSE(finds(R"([^\S])", "\u200b"));
    CHECK(finds("(?i:'s)", "'S"));
    CHECK(finds("(?i:'s)", "'\u017f"));  // long s is an s
    CHECK(finds(R"(\d)", "\u0663"));
    CHECK(finds(R"(\w)", "\u0301"));
    CHECK(finds(R"([\w_]\u0041)", "éA"));
    CHECK(finds(R"([^\r\n\p{L}\p{N}]?+\p{L}++)", "-é"));
    struct Published {
      const char* pattern;
      Texts pieces;
    };
    const Published published[] = {
        // Llama 3, and with single digits Qwen 2 and 3; OLMo 2 has the first
        {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
         {"I", "'LL", " ", " go", "123", "456", "?!\n\n", " \n", " ", " x"}},
        {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
         {"I", "'LL", " ", " go", "1", "2", "3", "4", "5", "6", "?!\n\n", " \n", " ", " x"}},
        // Mistral Nemo
        {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
         {"I", "'LL", " ", " go", "1", "2", "3", "4", "5", "6", "?!\n\n", " \n", " ", " x"}},
    };
    for (const Published& row : published)
      CHECK(pieces_of(PreTokenizer({SplitStep{Regex(row.pattern)}}), "I'LL  go123456?!\n\n \n  x") == row.pieces);
    for (const char* pattern : {"^a", "a$", "[a[b]]", "[a&&b]", R"(\h)", R"(\b)", R"([\W])", "a{1,2}+", "(?m)a",
                                "(?P<x>a)", "(a", "[a", "a\\", R"(\p{Nonsense})", R"(\x{110000})", "*"}) {
      CAPTURE(pattern);
      CHECK_THROWS_AS(Regex{pattern}, FormatError);
    }
    CHECK_THROWS_AS(RegexMatcher(Regex("(?:a|aa)+[bc]")).find(std::string(400, 'a'), 0), ValueError);
  }

  TEST_CASE("normal forms compose characters, and leave damaged bytes") {
    const auto with = [](std::string_view form) {
      return parse_tokenizer_json(
          byte_level("\"normalizer\": null", fmt::format("\"normalizer\": {{\"type\": \"{}\"}}", form)));
    };
    const auto through = [&](std::string_view form, std::string_view text) {
      const auto t = with(form);
      return t->decode(t->encode(text));
    };
    try {
      (void)with("NFC");
    } catch (const FormatError& e) {
      CHECK(std::string_view(e.what()).find("apt install libutf8proc-dev") != std::string_view::npos);
      return;  // a build without the library
    }
    CHECK(through("NFC", "e\u0301 \u212b \xFF") == "é Å \xFF");
    CHECK(through("NFC", "plain") == "plain");
    CHECK(through("NFD", "é") == "e\u0301");
    CHECK(through("NFKC", "\ufb01") == "fi");
    CHECK(through("NFC", "\ufb01") == "\ufb01");
  }

  TEST_CASE("what is not supported or damaged is refused by name") {
    struct Row {
      const char *what, *by, *message;
    };
    const Row rows[] = {
        {"\"normalizer\": null", R"("normalizer": {"type": "Lowercase"})", "the normalizer Lowercase is not supported"},
        {"\"normalizer\": null", R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "x"})",
         "Precompiled"},
        {"\"normalizer\": null", R"("normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"})",
         "empty"},
        {"\"normalizer\": null", R"("normalizer": [])", "normalizer is an array"},
        {"\"pre_tokenizer\": {\n  \"type\": \"ByteLevel\"", R"("pre_tokenizer": {"type": "UnicodeScripts")",
         "UnicodeScripts"},
        {"\"trim_offsets\": true", "\"trims\": true", "pre_tokenizer.trims = true is not supported"},
        {"\"decoder\": {\n  \"type\": \"ByteLevel\"", R"("decoder": {"type": "WordPiece")", "the decoder WordPiece"},
        {"\"post_processor\": null", R"("post_processor": {"type": "RobertaProcessing"})", "RobertaProcessing"},
        {"\"truncation\": null", R"("truncation": {"max_length": 5})", "truncation is not supported"},
        {"\"padding\": null", R"("padding": {"length": 5})", "padding is not supported"},
        {"\"type\": \"BPE\"", "\"type\": \"Unigram\"", "the model Unigram is not supported"},
        {"\"dropout\": null", "\"dropout\": 0.1", "dropout"},
        {"\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"</w>\"", "end_of_word_suffix = '</w>'"},
        {"\"unk_token\": null", "\"unk_token\": \"<unk>\"", "'<unk>' is not in the vocabulary"},
        {"\"fuse_unk\": false", "\"fuse_unk\": 1", "fuse_unk is 1; expected true or false"},
        {"\"fuse_unk\": false", "\"magic\": 1", "model.magic = 1 is not supported"},
        {"\"version\"", "\"mystery\": 3, \"version\"", "mystery = 3 is not supported"},
        {"\"ab\": 257", "\"ab\": 256", "have the same id 256"},
        {"\"ab\": 257", "\"ab\": -1", "the id -1 of 'ab' is out of range"},
        {"\"ab\": 257", "\"ab\": 2147483647", "out of range"},
        {"\"ab\": 257", "\"ab\": 1e99", "is no whole number"},
        {"\"ab\": 257", "\"ab\": 257, \"ab\": 258", "the field ab is given twice"},
        {"\"ab\": 257", "\"abc\": 257", "the merge 'ab' is not in the vocabulary"},
        {"\"id\": 258", "\"id\": 257", "has the id 257 of 'ab'"},
        {"\"id\": 258", "\"id\": 99999999", "out of range"},
        {"\"content\": \"<s>\"", "\"content\": 3", "added_tokens.content is 3; expected a string"},
        {"\"content\": \"<s>\"", "\"content\": \"\", \"stem\": true", "stem"},
        {"\"merges\": [", "\"merges\": [\"a b c\",", "is no pair of two texts"},
        {"\"merges\": [", "\"merges\": [[\"q\", \"zz\"],", "'zz' is not in the vocabulary"},
        {"\"merges\": [", "\"merge\": [", "model has no merges"},
        {"{", "[", "no JSON"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.by);
      try {
        (void)parse_tokenizer_json(byte_level(row.what, row.by));
        FAIL_CHECK("was read");
      } catch (const FormatError& e) {
        const std::string message = e.what();
        CHECK_MESSAGE(message.find(row.message) != std::string::npos, message);
        CHECK(message.find('\n') == std::string::npos);
      }
    }
    CHECK_THROWS_AS(parse_tokenizer_json(characters(R"("decoder": null)")), FormatError);
    CHECK_THROWS_AS(parse_tokenizer_json(std::string(100'000, '[')), FormatError);
  }

  TEST_CASE("damaged files never do more than throw") {
    const std::string whole = byte_level();
    std::mt19937 random(2);
    for (int i = 0; i < 300; ++i) {
      std::string text = whole;
      if (i % 3 == 0) text.resize(random() % text.size());
      for (int k = 0; k < 3 && !text.empty(); ++k) text[random() % text.size()] = "{}[]\",:0-9a\xFF"[random() % 13];
      try {
        (void)parse_tokenizer_json(text)->encode("ab <s> \xFF", {.parse_special = true});
      } catch (const Error&) {
      }
    }
  }

  TEST_CASE("bytes that a vocabulary lacks are unknown or an error") {
    const std::string text = byte_level("\"!\": 33,", "");
    CHECK_THROWS_WITH_AS((void)parse_tokenizer_json(text)->encode("a!"),
                         "encode: byte 0x21 is not in the vocabulary, which has no unknown token", ValueError);
    const auto t = parse_tokenizer_json(replaced(text, "\"unk_token\": null", "\"unk_token\": \"?\""));
    CHECK(t->encode("a!!") == Ids{'a', '?', '?'});
  }

  TEST_CASE("files and folders are found, and missing ones named") {
    const Folder folder;
    write_file(folder / "tokenizer.json", byte_level());
    write_file(folder / "tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "<s>"}, "x": 1})");
    for (const std::string& path : {folder.path.string(), folder / "tokenizer.json"}) {
      const auto t = read_tokenizer(path);
      CHECK(t->encode("ab") == Ids{257});
      CHECK(t->bos_id() == 258);
      CHECK(t->eos_id() == 258);
      CHECK(make_tokenizer(path, "")->to_json() == t->to_json());
    }
    write_file(folder / "other.json", byte_level("\"BPE\"", "\"WordLevel\""));
    CHECK_THROWS_WITH_AS(
        (void)read_tokenizer(folder / "other.json"),
        ("tokenizer: the model WordLevel is not supported; BPE is; in '" + (folder / "other.json") + "'").c_str(),
        FormatError);
    CHECK_THROWS_AS((void)read_tokenizer(folder / "missing.json"), IoError);
    std::filesystem::remove(folder / "tokenizer.json");
    CHECK_THROWS_AS((void)read_tokenizer(folder.path.string()), IoError);
    write_file(folder / "vocab.json", R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3, "<s>": 4})");
    write_file(folder / "merges.txt", "#version: 0.2\na b\r\n\n");
    const auto t = read_tokenizer(folder.path.string());
    CHECK(t->encode("abba<|endoftext|>", {.parse_special = true}) == Ids{2, 1, 0, 3});
    write_file(folder / "merges.txt", "a b c\n");
    CHECK_THROWS_AS((void)read_tokenizer(folder.path.string()), FormatError);
    write_file(folder / "vocab.json", R"({"a": 0, "b": 7})");
    CHECK_THROWS_AS((void)read_tokenizer(folder.path.string()), FormatError);
  }
}
