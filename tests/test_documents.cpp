// What README.md and docs/ show is code that exists: each block under a `<!-- file -->` mark is, line for line, a part of that file, which is compiled.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;
const fs::path root = TAPESTRY_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> documents() {
  std::vector<fs::path> list = {root / "README.md", root / "CONTRIBUTING.md"};
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") list.push_back(entry.path());
  return list;
}

}  // namespace

TEST_SUITE("documents") {
  TEST_CASE("every marked block is a part of its file") {
    const std::regex block("<!-- ([^ ]+) -->\n```cpp\n([^`]*)```");
    int blocks = 0;
    for (const fs::path& document : documents()) {
      const std::string text = read(document);
      for (auto it = std::sregex_iterator(text.begin(), text.end(), block); it != std::sregex_iterator();
           ++it, ++blocks) {
        CAPTURE(document.string());
        CAPTURE((*it)[2].str());
        CHECK(read(root / (*it)[1].str()).find((*it)[2].str()) != std::string::npos);
      }
      // A mark that the pattern above does not match would go unread.
      const std::regex mark("<!-- [^ ]+ -->");
      const auto marks = std::distance(std::sregex_iterator(text.begin(), text.end(), mark), std::sregex_iterator());
      CHECK(marks == std::distance(std::sregex_iterator(text.begin(), text.end(), block), std::sregex_iterator()));
    }
    CHECK(blocks >= 12);
  }

  TEST_CASE("the files they link to exist") {
    const std::regex link("\\]\\(([^):#]+)(#[^)]*)?\\)"), code("```[^`]*```|`[^`]*`");
    for (const fs::path& document : documents()) {
      const std::string text = std::regex_replace(read(document), code, "");
      for (auto it = std::sregex_iterator(text.begin(), text.end(), link); it != std::sregex_iterator(); ++it)
        CHECK_MESSAGE(fs::exists(document.parent_path() / (*it)[1].str()), document.string(), " links to ",
                      (*it)[1].str());
    }
  }
}
