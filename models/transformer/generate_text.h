// Writing on in text: tokens become complete characters, and the text ends at a stop string.
// Not here: how a conversation is written down (chat.h).
// Next: generate.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../text/stop_strings.h"
#include "../text/tokenizer.h"
#include "generate.h"

namespace tapestry {

/// The text of tokens that come one at a time, up to a stop string. Special tokens have no text here, nor have ids
/// above the tokenizer's, which are padding of the model's vocabulary.
class TextStream {
 public:
  /// Borrows the tokenizer. `before` are tokens the text follows.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop, std::span<const int32_t> before = {});
  /// Takes a token; returns the text that is certain now: complete characters, and U+FFFD for what is no UTF-8.
  std::string push(int32_t id);
  /// Ends the text; returns what is left of it.
  std::string flush();
  /// A stop string was found: what follows has no text.
  [[nodiscard]] bool stopped() const { return stop_.stopped(); }

 private:
  void decode(int32_t id, std::string& bytes);

  const Tokenizer& tokenizer_;
  DecodeState state_;
  StopStrings stop_;
  Utf8Stream utf8_;
};

struct TextGeneration {
  std::string text;  ///< what was given out, joined: without the prompt, a stop string or a stop id
  Generation tokens;
};

/// Takes a piece of text i as soon as it is certain.
using EmitText = std::function<void(size_t i, std::string_view piece)>;

/// Text that follows each prompt (tokens), read side by side; ends at `stop` strings, with EndReason::stopped, or as
/// generate() does, with the same errors.
std::vector<TextGeneration> generate_text(Decoder& decoder, const Tokenizer& tokenizer,
                                          std::span<const std::vector<int32_t>> prompts, const GenerateOptions& options,
                                          const std::vector<std::string>& stop, const EmitText& emit = {});

}  // namespace tapestry
