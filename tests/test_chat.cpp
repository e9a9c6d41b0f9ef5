// Conversations as their templates write them, character for character, and over one cache.
// Not here: the commands (test_programs.cpp).
// Next: ../models/transformer/chat.h.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../models/transformer/chat.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;

namespace {

using Ids = std::vector<int32_t>;

/// Bytes, and special tokens from id 256 on.
class SpecialBytes final : public Tokenizer {
 public:
  explicit SpecialBytes(std::vector<std::string> specials) : specials_(std::move(specials)) {}
  [[nodiscard]] std::string_view name() const override { return "special_bytes"; }
  [[nodiscard]] int64_t vocab_size() const override { return 256 + static_cast<int64_t>(specials_.size()); }
  void decode_next(int32_t id, DecodeState& /*state*/, std::string& bytes) const override {
    bytes += id < 256 ? std::string(1, static_cast<char>(id)) : specials_[static_cast<size_t>(id) - 256];
  }
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override {
    for (size_t i = 0; i < specials_.size(); ++i)
      if (specials_[i] == token) return static_cast<int32_t>(256 + i);
    return std::nullopt;
  }
  [[nodiscard]] bool is_special(int32_t id) const override { return id >= 256; }
  [[nodiscard]] std::string to_json() const override { return "{}"; }

 private:
  [[nodiscard]] std::vector<int32_t> encode_text(std::string_view text,
                                                 const EncodeOptions& /*options*/) const override {
    Ids ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::vector<std::string> specials_;
};

const SpecialBytes& tokenizer() {
  static const SpecialBytes all({"<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
                                 "<|end_header_id|>", "<|eot_id|>", "<bos>", "<start_of_turn>", "<end_of_turn>"});
  return all;
}

Transformer small_model(int64_t max_seq_len) {
  manual_seed(4);
  Transformer model({.vocab_size = tokenizer().vocab_size(),
                     .max_seq_len = max_seq_len,
                     .n_layers = 2,
                     .n_heads = 2,
                     .n_kv_heads = 1,
                     .d_model = 16,
                     .d_ff = 24});
  const NoGrad no_grad;
  for (const auto& [name, parameter] : named_parameters(model))
    if (parameter.dim() == 2) parameter.copy_(parameter * 2.0);
  return model;
}

/// A conversation of two turns as the template writes it.
std::string conversation(const ChatTemplate& t, std::string_view system, const std::string& first,
                         const std::string& answer, const std::string& second) {
  return to_text(chat_begin(t, system)) + to_text(chat_turn(t, first, system)) + answer + to_text(chat_end(t)) +
         to_text(chat_turn(t, second));
}

}  // namespace

TEST_SUITE("chat") {
  TEST_CASE("the templates, character for character") {
    struct Row {
      const char* name;
      std::string system, want;
    };
    const Row rows[] = {
        {"chatml", "Be brief.",
         "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi \n<|im_end|>\n<|im_start|>assistant\nHello."
         "<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"},
        {"chatml", "",
         "<|im_start|>user\n Hi "
         "\n<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
         "<|im_start|>assistant\n"},
        {"llama-3", " Be brief.\n",
         "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user"
         "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>"
         "<|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
        {"gemma", "",
         "<bos><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n<start_of_turn>user\n"
         "Why?<end_of_turn>\n<start_of_turn>model\n"},
        {"gemma", "Be brief.",
         "<bos><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello.<end_of_turn>\n"
         "<start_of_turn>user\nWhy?<end_of_turn>\n<start_of_turn>model\n"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.name);
      CHECK(conversation(chat_template(row.name), row.system, " Hi \n", "Hello.", "Why?") == row.want);
    }
    CHECK_THROWS_WITH_AS((void)chat_template("alpaca"),
                         "chat: there is no template called 'alpaca'; there are chatml, llama-3 and gemma", ValueError);
  }

  TEST_CASE("what a user writes never becomes a special token, and a template needs its own") {
    const ChatTemplate& chatml = chat_template("chatml");
    const Ids ids = encode(tokenizer(), chat_turn(chatml, "<|im_end|>"));
    CHECK(std::count(ids.begin(), ids.end(), 257) == 1);  // the turn's own
    CHECK(tokenizer().decode(ids) == to_text(chat_turn(chatml, "<|im_end|>")));
    CHECK(chat_turn(chatml, "x")[1].text == "user\nx");  // one text, as it is tokenized whole
    CHECK_THROWS_WITH_AS((void)encode(ByteTokenizer(), chat_end(chatml)),
                         "chat: the tokenizer has no special token <|im_end|>, which the template needs", ValueError);
  }

  TEST_CASE("a folder's template is one of ours, whatever its white space and quotes, or refused") {
    const std::string chatml =
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
        "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    REQUIRE(chat_template_of_jinja(chatml) != nullptr);
    CHECK(chat_template_of_jinja(chatml)->name == "chatml");
    std::string other = chatml;
    for (char& c : other)
      if (c == '\'') c = '"';
    other.replace(other.find("{{\"<|im"), 2, "{{ \n  ");
    other.replace(other.find("%}{{"), 2, "%}\n");
    CHECK(chat_template_of_jinja(other) == chat_template_of_jinja(chatml));
    std::string space = chatml;
    space.replace(space.find("<|im_end|>"), 10, "<|im_end|> ");  // white space that is written
    CHECK(chat_template_of_jinja(space) == nullptr);
    CHECK(chat_template_of_jinja(chatml + " ") == nullptr);
    const Folder folder;
    const auto refused = [&](const std::string& part) {
      try {
        (void)chat_template_of_folder(folder.path.string());
        FAIL("it was taken");
      } catch (const ValueError& e) {
        CHECK(std::string(e.what()).find(part + "; choose one with --template: there are chatml, llama-3 and gemma") !=
              std::string::npos);
      }
    };
    refused("has no chat template");
    write_file(folder / "tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
    refused("is not one of ours");
    write_file(
        folder / "tokenizer_config.json",
        "{\"chat_template\": \"{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
        "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + "
        "'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% "
        "endif %}\"}");
    CHECK(chat_template_of_folder(folder.path.string()).name == "llama-3");
    write_file(folder / "chat_template.jinja", chatml);
    CHECK(chat_template_of_folder(folder.path.string()).name == "chatml");
    write_file(folder / "chat_template.jinja", "{{ bos_token }}");
    refused("is not one of ours");
  }

  TEST_CASE("many turns over one cache: answers as if everything were read again, and nothing is read twice") {
    const Transformer model = small_model(400);
    for (const char* name : {"chatml", "llama-3", "gemma"})
      for (const double temperature : {0.0, 1.0}) {
        CAPTURE(name);
        const ChatTemplate& format = chat_template(name);
        const GenerateOptions options{.max_tokens = 12, .sampler = {.temperature = temperature}, .seed = 3};
        Chat chat(model, tokenizer(), {.format = &format, .system = "S", .generate = options});
        Ids all = encode(tokenizer(), chat_begin(format, "S"));
        int64_t turn = 0;
        for (const char* user : {"Hello", "and then?", "", "x"}) {
          std::string streamed;
          const TextGeneration answer = chat.reply(user, [&](std::string_view piece) { streamed += piece; });
          CHECK(streamed == answer.text);
          const Ids more = encode(tokenizer(), chat_turn(format, user, turn == 0 ? "S" : ""));
          all.insert(all.end(), more.begin(), more.end());
          GenerateOptions alone = options;
          alone.seed = 3 + static_cast<uint64_t>(turn++);
          alone.stop_ids = encode(tokenizer(), chat_end(format));
          alone.stop_ids.resize(1);
          const Generation want = generate(model, all, alone, [](int32_t) {});
          CHECK(answer.tokens.ids == want.ids);
          CHECK(answer.tokens.reason == want.reason);
          for (const Ids& part : {want.ids, encode(tokenizer(), chat_end(format))})
            all.insert(all.end(), part.begin(), part.end());
          CHECK(chat.tokens() == all);
        }
        // All but the end of the last answer was read, each token once.
        CHECK(chat.computed() < static_cast<int64_t>(all.size()));
        CHECK(chat.computed() >= static_cast<int64_t>(all.size()) - 3);
        const int64_t computed = chat.computed();
        chat.clear();
        CHECK(chat.tokens() == encode(tokenizer(), chat_begin(format, "S")));
        CHECK(chat.computed() == computed);
      }
  }

  TEST_CASE("a full context ends an answer with a reason, and a turn without room is an error that changes nothing") {
    const Transformer model = small_model(64);
    const ChatTemplate& chatml = chat_template("chatml");
    Chat chat(model, tokenizer(), {.format = &chatml, .generate = {.max_tokens = 1000, .sampler = {.temperature = 0}}});
    CHECK_THROWS_AS((void)chat.reply(std::string(100, 'a')), ValueError);
    CHECK(chat.tokens().empty());
    const TextGeneration answer = chat.reply("Hi");
    if (answer.tokens.reason != EndReason::stop_id) CHECK(answer.tokens.reason == EndReason::max_seq_len);
    const Ids before = chat.tokens();
    CHECK_THROWS_AS((void)chat.reply("and then?"), ValueError);
    CHECK(chat.tokens() == before);
    chat.clear();
    CHECK(chat.reply("Hi").tokens.ids == answer.tokens.ids);
    CHECK_THROWS_AS(Chat(model, tokenizer(), {}), ValueError);
    CHECK_THROWS_AS(Chat(model, ByteTokenizer(), {.format = &chatml}), ValueError);
    CHECK_THROWS_AS(Chat(model, tokenizer(), {.format = &chatml, .generate = {.when_full = WhenFull::slide}}),
                    ValueError);
    // An error while the answer is given out leaves the conversation as it was.
    Chat broken(model, tokenizer(), {.format = &chatml, .generate = {.max_tokens = 5, .sampler = {.temperature = 0}}});
    CHECK_THROWS_AS((void)broken.reply("Hi", [](std::string_view) { throw IoError("full"); }), IoError);
    CHECK(broken.tokens().empty());
    CHECK(broken.reply("Hi").tokens.ids == Ids(answer.tokens.ids.begin(), answer.tokens.ids.begin() + 5));
    // Nor does a later turn begin it again, where the system's text is written into the first one.
    const Transformer roomy = small_model(400);
    const ChatOptions gemma{.format = &chat_template("gemma"), .system = "S", .generate = {.max_tokens = 3}};
    Chat straight(roomy, tokenizer(), gemma), stumbling(roomy, tokenizer(), gemma);
    for (Chat* each : {&straight, &stumbling}) (void)each->reply("Hi");
    CHECK_THROWS_AS((void)stumbling.reply("x", [](std::string_view) { throw IoError("full"); }), IoError);
    for (Chat* each : {&straight, &stumbling}) (void)each->reply("y");
    CHECK(stumbling.tokens() == straight.tokens());
  }
}
