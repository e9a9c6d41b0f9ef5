// The three templates, their Jinja texts, and the pieces of a conversation.
// Next: ../../tests/test_chat.cpp.
#include "chat_template.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../../autograd/error.h"
#include "../../nn/mapped_file.h"
#include "../strict_json.h"

namespace tapestry {
namespace {

constexpr ChatTemplate templates[] = {
    {.name = "chatml",
     .begin = "",
     .open = "<|im_start|>",
     .close_role = "",
     .role_separator = "\n",
     .close = "<|im_end|>",
     .separator = "\n",
     .assistant = "assistant"},
    {.name = "llama-3",
     .begin = "<|begin_of_text|>",
     .open = "<|start_header_id|>",
     .close_role = "<|end_header_id|>",
     .role_separator = "\n\n",
     .close = "<|eot_id|>",
     .separator = "",
     .assistant = "assistant",
     .strips = true},
    {.name = "gemma",
     .begin = "<bos>",
     .open = "<start_of_turn>",
     .close_role = "",
     .role_separator = "\n",
     .close = "<end_of_turn>",
     .separator = "\n",
     .assistant = "model",
     .has_system = false,
     .strips = true},
};
constexpr const char* list = "there are chatml, llama-3 and gemma";

struct Jinja {
  std::string_view name, text;
};
// As published with models of these formats: ChatML as tokenizers state it by default, Llama 3, Gemma, Gemma 2.
constexpr Jinja jinjas[] = {
    {"chatml",
     "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
     "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    {"chatml",
     "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% for message in "
     "messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor "
     "%}{% "
     "if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    {"llama-3",
     "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
     "message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 "
     "%}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ "
     "'<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"},
    {"llama-3",
     "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + "
     "message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 "
     "%}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{{ "
     "'<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"},
    {"gemma",
     "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% "
     "endif "
     "%}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ "
     "raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if "
     "(message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif "
     "%}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if "
     "add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"},
};

/// Jinja with what does not matter left out: white space between the words of a tag, the line break after one, and
/// whether a string has double quotes or a line break in it is written out.
std::string plain(std::string_view jinja) {
  std::string text;
  bool in_tag = false;
  char quote = 0;
  for (const char c : jinja) {
    if (quote != 0) {
      if (c == '\n')
        text += "\\n";
      else
        text += c == quote ? '\'' : c;
      if (c == quote) quote = 0;
      continue;
    }
    if (in_tag && (c == '\'' || c == '"')) {
      quote = c;
      text += '\'';
      continue;
    }
    if (in_tag && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    if (!in_tag && c == '\n' && text.ends_with("%}")) continue;
    text += c;
    if (text.ends_with("{{") || text.ends_with("{%")) in_tag = true;
    if (text.ends_with("}}") || text.ends_with("%}")) in_tag = false;
  }
  return text;
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view space = " \t\n\r\v\f";
  const size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

void add(std::vector<ChatPiece>& pieces, std::string_view text, bool special) {
  if (text.empty()) return;
  if (!special && !pieces.empty() && !pieces.back().special)
    pieces.back().text += text;  // tokens of text do not end where a piece does
  else
    pieces.push_back({std::string(text), special});
}

void add_open(const ChatTemplate& t, std::vector<ChatPiece>& pieces, std::string_view role) {
  add(pieces, t.open, true);
  add(pieces, role, false);
  add(pieces, t.close_role, true);
  add(pieces, t.role_separator, false);
}

void add_turn(const ChatTemplate& t, std::vector<ChatPiece>& pieces, std::string_view role, std::string_view content) {
  add_open(t, pieces, role);
  add(pieces, content, false);
  add(pieces, t.close, true);
  add(pieces, t.separator, false);
}

}  // namespace

const ChatTemplate& chat_template(std::string_view name) {
  for (const ChatTemplate& t : templates)
    if (t.name == name) return t;
  fail<ValueError>("chat: there is no template called '{}'; {}", name, list);
}

const ChatTemplate* chat_template_of_jinja(std::string_view jinja) {
  const std::string text = plain(jinja);
  for (const Jinja& known : jinjas)
    if (text == plain(known.text)) return &chat_template(known.name);
  return nullptr;
}

const ChatTemplate& chat_template_of_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::string jinja;
  const std::string file = folder + "/chat_template.jinja", config = folder + "/tokenizer_config.json";
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    jinja = MappedFile(file).bytes();
  } else if (fs::exists(config, ignored)) {
    const auto json = parse_strict_json("tokenizer_config", MappedFile(config).bytes());
    if (json.is_object() && json.contains("chat_template") && json["chat_template"].is_string())
      jinja = json["chat_template"].get<std::string>();
  }
  if (jinja.empty()) fail<ValueError>("chat: '{}' has no chat template; choose one with --template: {}", folder, list);
  if (const ChatTemplate* t = chat_template_of_jinja(jinja)) return *t;
  fail<ValueError>("chat: the chat template of '{}' is not one of ours; choose one with --template: {}", folder, list);
}

std::vector<ChatPiece> chat_begin(const ChatTemplate& t, std::string_view system) {
  std::vector<ChatPiece> pieces;
  add(pieces, t.begin, true);
  if (t.has_system && !system.empty()) add_turn(t, pieces, "system", t.strips ? stripped(system) : system);
  return pieces;
}

std::vector<ChatPiece> chat_turn(const ChatTemplate& t, std::string_view user, std::string_view first_system) {
  std::vector<ChatPiece> pieces;
  const std::string before = first_system.empty() || t.has_system ? "" : std::string(first_system) + "\n\n";
  add_turn(t, pieces, "user", before + std::string(t.strips ? stripped(user) : user));
  add_open(t, pieces, t.assistant);
  return pieces;
}

std::vector<ChatPiece> chat_end(const ChatTemplate& t) {
  std::vector<ChatPiece> pieces;
  add(pieces, t.close, true);
  add(pieces, t.separator, false);
  return pieces;
}

std::string to_text(const std::vector<ChatPiece>& pieces) {
  std::string text;
  for (const ChatPiece& piece : pieces) text += piece.text;
  return text;
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::vector<ChatPiece>& pieces) {
  std::vector<int32_t> ids;
  for (const ChatPiece& piece : pieces) {
    if (piece.special) {
      const std::optional<int32_t> id = tokenizer.id_of(piece.text);
      if (!id || !tokenizer.is_special(*id))
        fail<ValueError>("chat: the tokenizer has no special token {}, which the template needs", piece.text);
      ids.push_back(*id);
    } else {
      const std::vector<int32_t> text = tokenizer.encode(piece.text);
      ids.insert(ids.end(), text.begin(), text.end());
    }
  }
  return ids;
}

}  // namespace tapestry
