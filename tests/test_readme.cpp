// What README.md shows is code that exists: each block under a `<!-- file -->` mark is, line for line, a part of that file, which is compiled.
#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(TAPESTRY_SOURCE_DIR) + "/" + path);
  REQUIRE_MESSAGE(file.good(), path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_SUITE("readme") {
  TEST_CASE("every marked block is a part of its file") {
    const std::string readme = read("README.md");
    const std::regex block("<!-- ([^ ]+) -->\n```cpp\n([^`]*)```");
    int blocks = 0;
    for (auto it = std::sregex_iterator(readme.begin(), readme.end(), block); it != std::sregex_iterator();
         ++it, ++blocks) {
      CAPTURE((*it)[1].str());
      CHECK(read((*it)[1]).find((*it)[2].str()) != std::string::npos);
    }
    CHECK(blocks == 3);
  }

  TEST_CASE("the files it links to exist") {
    const std::string readme = read("README.md");
    const std::regex link("\\]\\(([^):]+)\\)");
    for (auto it = std::sregex_iterator(readme.begin(), readme.end(), link); it != std::sregex_iterator(); ++it)
      CHECK(!read((*it)[1]).empty());
  }
}
