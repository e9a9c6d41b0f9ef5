// What README.md and docs/ show is code that exists: each block under a `<!-- file -->` mark is, line for line, a part of that file, which is compiled.
// The files that documents link to, and that sources name where they open, exist. Next: ../docs/tour.md.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
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

/// Sources of ours: C++ files outside what is built or hidden.
std::vector<fs::path> sources() {
  std::vector<fs::path> list;
  for (const char* folder : {"autograd", "ops", "nn", "optim", "models", "tests", "bench", "docs"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp") list.push_back(entry.path());
  return list;
}

/// The comment lines a file begins with.
std::string opening(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line) && line.starts_with("//");) text += line + "\n";
  return text;
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

  TEST_CASE("a header opens with a comment, and the files a source names there exist") {
    const std::regex file("[-A-Za-z0-9_./*]+\\.(?:h|cpp|md|inc)\\b");
    const std::set<std::string> foreign = {"cblas.h", "lapacke.h"};
    int named = 0;
    for (const fs::path& source : sources()) {
      const std::string text = opening(source);
      CHECK_MESSAGE((!text.empty() || source.extension() == ".cpp"), source.string(), " does not say what it is");
      for (auto it = std::sregex_iterator(text.begin(), text.end(), file); it != std::sregex_iterator(); ++it) {
        const std::string name = it->str();
        if (foreign.contains(name) || name.find('*') != std::string::npos) continue;
        ++named;
        CHECK_MESSAGE((fs::exists(source.parent_path() / name) || fs::exists(root / name)), source.string(), " names ",
                      name);
      }
    }
    CHECK(named > 300);
  }
}
