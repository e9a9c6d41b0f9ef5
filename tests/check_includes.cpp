// check_includes.cpp: compares every #include of the repository with the layers and the arrows between them.
// Not part of tapestry_tests: it needs no library, so `./dev lint` compiles and runs it alone. Next: CONTRIBUTING.md.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

// A layer and the layers it may include besides itself. A file belongs to the longest folder that is a prefix of its path.
const std::map<std::string, std::set<std::string>> arrows = {
    {"autograd", {}},
    {"autograd/tools", {"autograd"}},
    // Kernels know neither Tensor nor tape; what stands below both is theirs too.
    {"ops/kernels",
     {"autograd/dtype.h", "autograd/error.h", "autograd/parallel.h", "autograd/random.h", "autograd/shape.h",
      "autograd/small_vector.h", "autograd/strided.h"}},
    {"ops", {"ops/kernels", "autograd"}},
    {"nn", {"ops", "autograd"}},
    {"optim", {"ops", "ops/kernels", "autograd"}},
    {"models", {"nn", "optim", "ops", "autograd", "autograd/tools"}},
    {"models/programs", {"models", "nn", "optim", "ops", "autograd", "autograd/tools"}},
    {"tests", {"tests/op_table", "models", "nn", "optim", "ops", "ops/kernels", "autograd", "autograd/tools"}},
    {"tests/op_table", {"nn", "ops", "ops/kernels", "autograd", "autograd/tools"}},
    {"bench", {"tests/op_table", "models", "nn", "optim", "ops", "ops/kernels", "autograd", "autograd/tools"}},
    {"docs", {"tests/op_table", "models", "nn", "optim", "ops", "autograd", "autograd/tools"}},
};

// A system header (by prefix) and the files (by prefix) that may include it.
const std::map<std::string, std::vector<std::string>> owners = {
    {"cblas", {"ops/kernels/gemm"}},
    {"lapack", {"ops/kernels/lapack.cpp"}},
    {"xsimd/", {"ops/kernels/", "tests/"}},
    {"nlohmann/", {"nn/", "models/", "tests/", "bench/"}},
    {"CLI/", {"models/programs/", "bench/", "tests/fuzz/"}},
    {"doctest/", {"tests/", "docs/examples/"}},
    {"benchmark/", {"bench/"}},
    {"tapestry/", {"docs/", "tests/consumer/"}},
};

bool starts_with_any(std::string_view text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& p) { return text.starts_with(p); });
}

bool is_header(std::string_view path) { return path.ends_with(".h"); }

std::string layer_of(std::string path) {
  while (!path.empty() && !arrows.contains(path)) path = fs::path(path).parent_path().string();
  return path;
}

// Why `file` must not include `target` (another file of the repository), or "".
std::string reject_own(const std::string& file, const std::string& target) {
  const std::string from = layer_of(file), to = layer_of(target);
  if (from == to) return "";
  if (arrows.contains(from) && (arrows.at(from).contains(to) || arrows.at(from).contains(target))) return "";
  return from + " must not include " + (to.empty() ? "files outside the layers" : "this file of " + to);
}

// Why `file` must not include <header>, or "".
std::string reject_system(const std::string& file, const std::string& header) {
  for (const auto& [prefix, allowed] : owners)
    if (header.starts_with(prefix) && !starts_with_any(file, allowed))
      return "<" + header + "> belongs to " + allowed[0];
  const bool installed = is_header(file) && !starts_with_any(file, {"tests/", "bench/", "docs/", "models/programs/"});
  if (installed && header.starts_with("fmt/") && file != "autograd/error.h")
    return "fmt stays out of public headers except autograd/error.h";
  return "";
}

struct File {
  std::vector<std::string> own, system;
};

int failures = 0;

void report(const std::string& file, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", file.c_str(), why.c_str());
  ++failures;
}

File read_includes(const fs::path& root, const std::string& path) {
  File file;
  std::ifstream in(root / path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("#")) continue;
    const size_t word = line.find_first_not_of(" \t", 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const size_t open = line.find_first_of("<\"", word);
    if (open == std::string::npos) continue;
    const char closing = line[open] == '<' ? '>' : '"';
    const std::string name = line.substr(open + 1, line.find(closing, open + 1) - open - 1);
    if (closing == '>') {
      file.system.push_back(name);
      continue;
    }
    const std::string target = (fs::path(path).parent_path() / name).lexically_normal().string();
    if (fs::exists(root / target)) {
      file.own.push_back(target);
    } else {
      report(path,
             "\"" + name + "\" is not found relative to the file; write the relative path, or <> for other libraries");
    }
  }
  return file;
}

// Headers a user's program can reach must not bring xsimd, cblas or lapacke with them: they are built for the library's flags.
void check_reach(const std::map<std::string, File>& files, const std::string& start) {
  std::set<std::string> seen = {start};
  std::vector<std::string> todo = {start};
  while (!todo.empty()) {
    const std::string path = todo.back();
    todo.pop_back();
    if (!files.contains(path)) continue;
    for (const std::string& name : files.at(path).system)
      if (starts_with_any(name, {"xsimd/", "cblas", "lapack"})) report(start, "reaches <" + name + "> through " + path);
    for (const std::string& next : files.at(path).own)
      if (seen.insert(next).second) todo.push_back(next);
  }
}

// The rules themselves: what each of them must refuse and allow.
void check_rules() {
  const struct {
    const char *file, *target;
    bool allowed;
  } own[] = {
      {"autograd/tensor.h", "autograd/shape.h", true},
      {"autograd/tensor.h", "ops/ops.h", false},
      {"autograd/engine.cpp", "autograd/tools/draw.h", false},
      {"autograd/tools/draw.cpp", "autograd/node.h", true},
      {"ops/kernels/gemm.h", "autograd/dtype.h", true},
      {"ops/kernels/gemm.h", "autograd/tensor.h", false},
      {"ops/norm.cpp", "ops/kernels/norm.h", true},
      {"ops/norm.cpp", "nn/norm.h", false},
      {"nn/linear.h", "ops/ops.h", true},
      {"nn/linear.h", "optim/adamw.h", false},
      {"optim/adamw.cpp", "ops/kernels/optimizer.h", true},
      {"optim/adamw.h", "nn/module.h", false},
      {"models/mlp.h", "nn/linear.h", true},
      {"models/mlp.h", "models/programs/train.h", false},
      {"models/text/corpus.h", "models/mlp.h", true},
      {"models/mlp.h", "tests/main.cpp", false},
  };
  for (const auto& row : own)
    if (reject_own(row.file, row.target).empty() != row.allowed)
      report(row.file, std::string("rule broken: ") + row.target);
  const struct {
    const char *file, *header;
    bool allowed;
  } system[] = {
      {"ops/kernels/gemm.cpp", "cblas.h", true},   {"ops/matmul.cpp", "cblas.h", false},
      {"ops/linalg.cpp", "lapacke.h", false},      {"ops/kernels/lapack.cpp", "lapacke.h", true},
      {"autograd/error.h", "fmt/core.h", true},    {"autograd/tensor.h", "fmt/core.h", false},
      {"autograd/tensor.cpp", "fmt/core.h", true}, {"ops/pointwise.h", "xsimd/xsimd.hpp", false},
      {"nn/linear.h", "CLI/CLI.hpp", false},       {"nn/linear.h", "vector", true},
  };
  for (const auto& row : system)
    if (reject_system(row.file, row.header).empty() != row.allowed)
      report(row.file, std::string("rule broken: ") + row.header);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: check_includes SOURCE_DIR\n", stderr);
    return 2;
  }
  check_rules();
  const fs::path root = argv[1];
  std::map<std::string, File> files;
  for (const char* top : {"autograd", "ops", "nn", "optim", "models", "tests", "bench", "docs"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string path = fs::relative(entry.path(), root).string();
      if (is_header(path) || path.ends_with(".cpp")) files[path] = read_includes(root, path);
    }
  }
  for (const auto& [path, file] : files) {
    for (const std::string& target : file.own)
      if (const std::string why = reject_own(path, target); !why.empty()) report(path, why + " (" + target + ")");
    for (const std::string& header : file.system)
      if (const std::string why = reject_system(path, header); !why.empty()) report(path, why);
    const std::string layer = layer_of(path);
    if (is_header(path) && layer != "ops/kernels" && !starts_with_any(path, {"tests/", "bench/", "docs/"}))
      check_reach(files, path);
  }
  if (files.empty()) report(argv[1], "no source file found");
  std::printf("check_includes: %zu files, %d faults\n", files.size(), failures);
  return failures == 0 ? 0 : 1;
}
