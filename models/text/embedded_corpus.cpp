// Takes the collected text into the object file with the assembler's .incbin: no limit on literals, no time to compile.
// Not the place where the files are chosen: models/CMakeLists.txt.
#include "embedded_corpus.h"

extern "C" {
extern const char tapestry_corpus_begin[];
extern const char tapestry_corpus_end[];
}

asm(R"(
  .section .rodata
  .global tapestry_corpus_begin
  .global tapestry_corpus_end
tapestry_corpus_begin:
  .incbin ")" TAPESTRY_EMBEDDED_CORPUS R"("
tapestry_corpus_end:
  .byte 0
  .previous
)");

namespace tapestry {

std::string_view embedded_corpus() {
  return {tapestry_corpus_begin, static_cast<size_t>(tapestry_corpus_end - tapestry_corpus_begin)};
}

}  // namespace tapestry
