// How a conversation is written down for a model: chatml, llama-3 and gemma.
// Not here: the Jinja language; a template in a file is one of these or refused.
// Next: ../transformer/chat.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer.h"

namespace tapestry {

/// A turn is: open, role, close_role, the content, close. Roles are user, assistant and system.
struct ChatTemplate {
  std::string_view name;
  std::string_view begin;           ///< token a conversation begins with, if any
  std::string_view open;            ///< token
  std::string_view close_role;      ///< token, if any
  std::string_view role_separator;  ///< text between role and content
  std::string_view close;           ///< token
  std::string_view separator;       ///< text after a turn
  std::string_view assistant;       ///< what the assistant is called
  bool has_system = true;           ///< else the system's text and an empty line stand before the first user's
  bool strips = false;              ///< spaces and line breaks around a content are left out
};

/// The template called chatml, llama-3 or gemma. ValueError with the list for another name.
const ChatTemplate& chat_template(std::string_view name);
/// The template of a model's folder: tokenizer_config.json's chat_template, or the file chat_template.jinja. ValueError
/// with the list, and how to choose one by name, if it is none of them or there is none; IoError or FormatError for
/// files that cannot be read.
const ChatTemplate& chat_template_of_folder(const std::string& folder);
/// The template whose Jinja text this is, but for white space between its words and kinds of quotes; nullptr for another.
const ChatTemplate* chat_template_of_jinja(std::string_view jinja);

/// A part of a conversation: a special token, or text, which never becomes one, whatever it holds.
struct ChatPiece {
  std::string text;
  bool special = false;
};

/// What a conversation begins with. `system` may be empty for none; where the template has no system turn it must be
/// given to the first chat_turn().
std::vector<ChatPiece> chat_begin(const ChatTemplate& t, std::string_view system);
/// A user's turn, and the beginning of the assistant's answer.
std::vector<ChatPiece> chat_turn(const ChatTemplate& t, std::string_view user, std::string_view first_system = {});
/// The end of the assistant's answer.
std::vector<ChatPiece> chat_end(const ChatTemplate& t);

/// As one string, for people.
std::string to_text(const std::vector<ChatPiece>& pieces);
/// As tokens. ValueError naming a special token the tokenizer does not have.
std::vector<int32_t> encode(const Tokenizer& tokenizer, const std::vector<ChatPiece>& pieces);

}  // namespace tapestry
