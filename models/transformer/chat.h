// A conversation with a model: turns are written down by a template, and nothing the cache holds is read again.
// Not here: the templates (../text/chat_template.h).
// Next: generate_text.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../text/chat_template.h"
#include "generate_text.h"

namespace tapestry {

struct ChatOptions {
  const ChatTemplate* format = nullptr;  ///< how turns are written down; must be given
  std::string system = {};               ///< what stands before the first turn; empty for nothing
  GenerateOptions generate = {};         ///< of each answer; the token that closes a turn ends it, too
  std::vector<std::string> stop = {};    ///< strings an answer ends before
};

/// The conversation is what the template makes of it, but that answers stay the tokens that were drawn: their text is
/// never turned into tokens again. Answer n is drawn with seed options.generate.seed + n.
class Chat {
 public:
  /// Borrows model and tokenizer. ValueError without a template, for when_full = slide, which would forget how the
  /// conversation began, and where the tokenizer lacks one of the template's tokens.
  Chat(const Transformer& model, const Tokenizer& tokenizer, ChatOptions options);
  /// The assistant's answer to a user's turn. ValueError, and nothing is said, where the turn and the first token of an
  /// answer have no place in max_seq_len.
  TextGeneration reply(std::string_view user, const std::function<void(std::string_view piece)>& emit = {});
  /// All tokens so far, those of the last answer's end included.
  [[nodiscard]] const std::vector<int32_t>& tokens() const { return tokens_; }
  /// Tokens of prompts that the last answer had to read.
  [[nodiscard]] int64_t last_read() const { return last_read_; }
  /// Tokens that were computed so far: as many as were ever read, if none was read twice.
  [[nodiscard]] int64_t computed() const { return computed_before_ + decoder_->computed(); }
  /// Begins another conversation.
  void clear();

 private:
  void restart();

  const Transformer& model_;
  const Tokenizer& tokenizer_;
  ChatOptions options_;
  std::optional<Decoder> decoder_;
  std::vector<int32_t> tokens_;
  bool begun_ = false;  // there was a turn, which some templates write the system's text into
  uint64_t answers_ = 0;
  int64_t last_read_ = 0, computed_before_ = 0;
};

}  // namespace tapestry
