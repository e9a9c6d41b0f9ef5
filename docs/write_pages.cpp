// tapestry_docs: writes the generated pages, ops.md and transformer_config.md, into the folder it is given.
// Not the texts themselves (tests/op_table/page.cpp, models/transformer/config_page.cpp). Run by ./dev docs.
#include <cstdio>
#include <fstream>

#include "../models/transformer/config_options.h"
#include "../tests/op_table/page.h"

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.flush();
  if (!file) std::fprintf(stderr, "tapestry_docs: cannot write %s\n", path.c_str());
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc < 2 ? "docs" : argv[1];
  return write(folder + "/ops.md", tapestry::op_table::page()) &&
                 write(folder + "/transformer_config.md", tapestry::config_page())
             ? 0
             : 1;
}
