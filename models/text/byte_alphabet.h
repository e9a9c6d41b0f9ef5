// The 256 characters that stand for bytes in the files of byte-level vocabularies (Radford et al. 2019, GPT-2): printable
// Latin-1 characters for themselves, U+0100 … U+0143 for the other bytes in order.
// Not an encoding of text: ids are made from bytes. Next: bpe.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tapestry {

/// The characters, in UTF-8, that stand for the bytes.
std::string to_byte_alphabet(std::string_view bytes);
/// The bytes for which the characters stand; nothing if one of them stands for none.
std::optional<std::string> from_byte_alphabet(std::string_view characters);

}  // namespace tapestry
