// tapestry_docs: writes the page of ops to the file it is given, or to standard output.
// Not the text itself (tests/op_table/page.cpp). Run by ./dev docs.
#include <cstdio>
#include <fstream>

#include "../tests/op_table/page.h"

int main(int argc, char** argv) {
  const std::string text = tapestry::op_table::page();
  if (argc < 2) return std::fputs(text.c_str(), stdout) < 0;
  std::ofstream file(argv[1], std::ios::binary);
  file << text;
  file.flush();
  if (file) return 0;
  std::fprintf(stderr, "tapestry_docs: cannot write %s\n", argv[1]);
  return 1;
}
