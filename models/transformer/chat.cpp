// Which tokens of a conversation are still to be read.
// Next: ../programs/chat.cpp.
#include "chat.h"

#include <utility>

#include "../../autograd/error.h"

namespace tapestry {

Chat::Chat(const Transformer& model, const Tokenizer& tokenizer, ChatOptions options)
    : model_(model), tokenizer_(tokenizer), options_(std::move(options)) {
  if (options_.format == nullptr)
    fail<ValueError>("chat: there is no template; give one, such as chat_template(\"chatml\")");
  if (options_.generate.when_full == WhenFull::slide)
    fail<ValueError>("chat: when_full is slide, which would forget how the conversation began; use stop");
  options_.generate.stop_ids.push_back(encode(tokenizer_, chat_end(*options_.format)).front());
  clear();
}

void Chat::restart() {
  if (decoder_) computed_before_ += decoder_->computed();
  decoder_.emplace(model_, decoder_options(options_.generate));
}

void Chat::clear() {
  restart();
  begun_ = false;
  tokens_ = encode(tokenizer_, chat_begin(*options_.format, options_.system));
}

TextGeneration Chat::reply(std::string_view user, const std::function<void(std::string_view piece)>& emit) {
  const std::vector<int32_t> turn =
      encode(tokenizer_, chat_turn(*options_.format, user, !begun_ ? options_.system : std::string()));
  const auto all = static_cast<int64_t>(tokens_.size() + turn.size());
  if (all > model_.config.max_seq_len)
    fail<ValueError>("chat: the conversation has {} tokens, more than max_seq_len {}; begin another", all,
                     model_.config.max_seq_len);
  std::vector<int32_t> unread(tokens_.begin() + static_cast<std::ptrdiff_t>(decoder_->tokens().size()), tokens_.end());
  unread.insert(unread.end(), turn.begin(), turn.end());
  GenerateOptions options = options_.generate;
  options.seed += answers_;
  TextGeneration answer;
  try {
    answer = std::move(generate_text(*decoder_, tokenizer_, std::span(&unread, 1), options, options_.stop,
                                     [&](size_t, std::string_view piece) {
                                       if (emit) emit(piece);
                                     })[0]);
  } catch (...) {
    restart();  // what was read of this turn is none of the conversation
    throw;
  }
  begun_ = true;
  ++answers_;
  last_read_ = static_cast<int64_t>(unread.size());
  const std::vector<int32_t> end = encode(tokenizer_, chat_end(*options_.format));
  for (const std::vector<int32_t>* part :
       std::initializer_list<const std::vector<int32_t>*>{&turn, &answer.tokens.ids, &end})
    tokens_.insert(tokens_.end(), part->begin(), part->end());
  return answer;
}

}  // namespace tapestry
