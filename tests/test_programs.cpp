// The program as its user meets it: what it writes, what it says about bad input, and how it stops.
// Not here: training itself (test_trainer.cpp).
// Next: ../models/programs/main.cpp.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "../autograd/random.h"
#include "../models/text/byte_alphabet.h"
#include "../models/training/checkpoint.h"
#include "../models/training/run_folder.h"
#include "../models/transformer/hf/folder.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;

namespace {

using Words = std::vector<std::string>;

struct Outcome {
  int status = -1;  ///< exit status, or −signal
  std::string out, err;
};

/// The program, started in a folder with its output in two files there, or on another device.
class Program {
 public:
  Program(const Folder& folder, const Words& words, const std::string& out = "", const std::string& in = "/dev/null")
      : out_(out.empty() ? folder / "stdout" : out), err_(folder / "stderr") {
    Words all = words;
    all.insert(all.begin(), TAPESTRY_PROGRAM);
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::filesystem::remove(folder / "stdout");  // what is read there from now on is this program's
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    if (::chdir(folder.path.c_str()) == 0 && ::dup2(::open(in.c_str(), O_RDONLY), 0) == 0 &&
        ::dup2(::open(out_.c_str(), flags, 0600), 1) == 1 && ::dup2(::open(err_.c_str(), flags, 0600), 2) == 2)
      ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  void signal(int number) const { ::kill(pid_, number); }
  [[nodiscard]] Outcome wait() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            std::filesystem::is_regular_file(out_) ? read_file(out_) : "", read_file(err_)};
  }

 private:
  std::string out_, err_;
  pid_t pid_ = -1;
};

Outcome run(const Folder& folder, const Words& words) { return Program(folder, words).wait(); }

/// A folder with text.txt, small.json and, after `train`, a run in "run".
struct Place : Folder {
  Place() {
    write_file(*this / "text.txt", small_text());
    write_file(*this / "small.json", small_config().to_json());
  }
  [[nodiscard]] Outcome train(const Words& more = {}) const {
    Words words = {"train", "--data", "text.txt", "--config", "small.json", "--out", "run", "--sample", "40"};
    words.insert(words.end(), more.begin(), more.end());
    return run(*this, words);
  }
};

/// Every file below a folder with its bytes, but for the captured output.
std::map<std::string, std::string> files_of(const Folder& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path)) {
    const std::string name = entry.path().lexically_relative(folder.path).string();
    if (name != "stdout" && name != "stderr")
      files[name] = entry.is_regular_file() ? read_file(entry.path().string()) : "";
  }
  return files;
}

/// A folder as models are published in: a small model that knows nothing, bytes and three special tokens.
void write_published_model(const std::string& folder) {
  manual_seed(5);
  const TransformerConfig config{.vocab_size = 259,
                                 .max_seq_len = 128,
                                 .n_layers = 2,
                                 .n_heads = 2,
                                 .n_kv_heads = 1,
                                 .d_model = 16,
                                 .d_ff = 24,
                                 .rope_layout = RopeLayout::half};
  hf::save_model(folder, Transformer(config), hf::family_for(config), {.ids = {.bos = {256}, .eos = {258}, .pad = {}}});
  nlohmann::json tokenizer = {
      {"added_tokens", nlohmann::json::array()},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"merges", nlohmann::json::array()}}}};
  for (int byte = 0; byte < 256; ++byte)
    tokenizer["model"]["vocab"][to_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  int id = 256;
  for (const char* special : {"<|im_start|>", "<|im_end|>", "<|end|>"})
    tokenizer["added_tokens"].push_back({{"id", id++}, {"content", special}, {"special", true}});
  write_file(folder + "/tokenizer.json", tokenizer.dump());
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_SUITE("programs") {
  TEST_CASE("--memory-report says what memory was for; --debug-nan ends with the operation that was not finite first") {
    const Place place;
    const Outcome report = place.train({"--memory-report"});
    REQUIRE_MESSAGE(report.status == 0, report.err);
    for (const char* part : {"parameters", "optimizer", "saved for backward", "layers.1.feed_forward"})
      CHECK_MESSAGE(holds(report.out, part), part);
    const Outcome nan = place.train({"--debug-nan", "--overwrite", "--lr", "1e30"});
    CHECK(nan.status == 1);
    CHECK(nan.err.find("tapestry: train: step ") == 0);
    CHECK(holds(nan.err, " is not finite: "));
    CHECK(holds(nan.err, "; in f64 the same step is "));
    CHECK(std::count(nan.err.begin(), nan.err.end(), '\n') == 1);
    CHECK(files_of(place).contains("run/checkpoint.safetensors"));
    CHECK(files_of(place).contains("run/model.safetensors"));
  }

  TEST_CASE("train writes its files and says what the model achieved beside counting") {
    const Place place;
    const Outcome outcome = place.train();
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    CHECK(outcome.err.empty());
    for (const char* part : {"loss ln V = ", "step     12  train loss ", "this model", "bigram", "unigram",
                             "perplexity", "40 tokens it writes"})
      CHECK_MESSAGE(holds(outcome.out, part), part);
    const auto files = files_of(place);
    for (const char* name : {"run/log.jsonl", "run/config.json", "run/model.safetensors", "run/checkpoint.safetensors"})
      CHECK(files.contains(name));
    const std::string& log = files.at("run/log.jsonl");
    const auto last = nlohmann::json::parse(log.substr(log.rfind('{', log.rfind('{') - 1)));
    CHECK(last["step"] == 12);
    CHECK(last["train_loss"].is_number());
    CHECK(last["val_loss"].is_number());
    CHECK(last["tokens_per_second"].get<double>() > 0);
    for (const char* part : {"steps", "data", "evaluation", "checkpoint"})
      CHECK(last["seconds"][part].get<double>() >= 0);
  }

  TEST_CASE("generate goes on from a prompt, the same text for the same seed, in whole characters") {
    const Place place;
    REQUIRE(place.train().status == 0);
    const Outcome a =
        run(place, {"generate", "--model", "run", "--prompt", "the cat", "--max-tokens", "30", "--seed", "7"});
    CHECK_MESSAGE(a.status == 0, a.err);
    CHECK(a.out.starts_with("the cat"));
    CHECK(a.out.size() == 7 + 30 + 1);
    CHECK(run(place, {"generate", "--model", "run", "--prompt", "the cat", "--max-tokens", "30", "--seed", "7",
                      "--threads", "2"})
              .out == a.out);
    CHECK(run(place, {"generate", "--model", "run", "--prompt", "the cat", "--max-tokens", "30", "--seed", "8"}).out !=
          a.out);
    CHECK(run(place, {"generate", "--model", "run", "--max-tokens", "0"}).out == "\n");
    CHECK(
        run(place, {"generate", "--model", "run", "--prompt", "the", "--max-tokens", "8", "--temperature", "0"}).out ==
        run(place,
            {"generate", "--model", "run", "--prompt", "the", "--max-tokens", "8", "--top-k", "1", "--seed", "9"})
            .out);
    CHECK(holds(run(place, {"info", "--model", "run"}).out, "q_proj"));
  }

  TEST_CASE("generate stops where it is told, says why and how fast, and writes several texts side by side") {
    const Place place;
    REQUIRE(place.train().status == 0);
    const auto write = [&](const Words& more) {
      Words words = {"generate", "--model", "run", "--prompt", "the cat", "--max-tokens", "60", "--seed", "7"};
      words.insert(words.end(), more.begin(), more.end());
      return run(place, words);
    };
    const Outcome free = write({});
    CHECK(holds(free.err, "prompt: 7 tokens, "));
    CHECK(holds(free.err, " tokens/s; ended by max_tokens\n"));
    const std::string stop = free.out.substr(27, 2);
    const Outcome stopped = write({"--stop", stop, "--stop", "nowhere"});
    CHECK(stopped.out == free.out.substr(0, free.out.find(stop, 7)) + "\n");
    CHECK(holds(stopped.err, "ended by stopped"));
    const Outcome full = write({"--when-full", "stop", "--log-probabilities", "2"});
    CHECK(full.out == free.out.substr(0, 17) + "\n");
    CHECK(holds(full.err, "ended by max_seq_len"));
    CHECK(std::count(full.err.begin(), full.err.end(), '\n') == 11);  // and a line for each of ten tokens
    const Outcome both = write({"--prompt", "line"});
    CHECK(both.out.starts_with(free.out));
    CHECK(std::count(both.err.begin(), both.err.end(), '\n') == 2);
    CHECK(write({"--prefill-chunk", "2"}).out == free.out);
    CHECK(write({"--bf16-cache", "--repetition-penalty", "1.2", "--min-p", "0.1"}).status == 0);
  }

  TEST_CASE("a published folder writes and chats, a line a turn, and reads no token twice") {
    const Place place;
    write_published_model(place / "model");
    const Outcome written = run(place, {"generate", "--model", "model", "--prompt", "the<|im_end|>", "--special",
                                        "--max-tokens", "9", "--temperature", "0"});
    REQUIRE_MESSAGE(written.status == 0, written.err);
    CHECK(written.out.starts_with("the<|im_end|>"));
    CHECK(holds(written.err, "prompt: 4 tokens"));
    CHECK(run(place, {"eval", "--model", "model", "--data", "text.txt", "--stride", "64"}).status == 0);
    CHECK(run(place, {"check-cache", "--model", "model"}).status == 0);
    write_file(place / "turns", "Hi\n\nand then?\n/new\nHi\n/exit\nnever read\n");
    const Words chat = {"chat",       "--model",      "model",        "--system", "S",
                        "--template", "chatml",       "--max-tokens", "8",        "--temperature",
                        "0",          "--ignore-eos", "--speed"};
    const Outcome said = Program(place, chat, "", place / "turns").wait();
    REQUIRE_MESSAGE(said.status == 0, said.err);
    std::vector<int> read;  // tokens of each prompt
    for (size_t at = 0; (at = said.err.find("prompt: ", at)) != std::string::npos; ++at)
      read.push_back(std::stoi(said.err.substr(at + 8)));
    // <|im_start|> system ⏎ S <|im_end|> ⏎ <|im_start|> user ⏎ Hi <|im_end|> ⏎ <|im_start|> assistant ⏎; then the answer's last
    // token and its end, and a turn.
    REQUIRE(read.size() == 3);
    CHECK(read[0] == 1 + 8 + 2 + 1 + 7 + 2 + 1 + 10);
    CHECK(read[1] >= 2 + 1 + 14 + 2 + 1 + 10);
    CHECK(read[1] <= 3 + 1 + 14 + 2 + 1 + 10);
    CHECK(read[2] == read[0]);
    write_file(place / "model/tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
    const Outcome refused = run(place, {"chat", "--model", "model"});
    CHECK(refused.status == 1);
    CHECK(holds(refused.err,
                "the chat template of 'model' is not one of ours; choose one with --template: there are chatml"));
  }

  TEST_CASE("eval agrees with training, whatever the stride; check-cache proves the cache") {
    const Place place;
    REQUIRE(place.train().status == 0);
    const auto number = [](const std::string& text, const std::string& name) {
      const size_t at = text.find(name);
      REQUIRE(at != std::string::npos);
      return std::stod(text.substr(at + name.size()));
    };
    const Outcome eval = run(place, {"eval", "--model", "run", "--data", "text.txt"});
    REQUIRE_MESSAGE(eval.status == 0, eval.err);
    const double loss = number(eval.out, "loss");
    CHECK(number(eval.out, "perplexity") == doctest::Approx(std::exp(loss)).epsilon(1e-3));
    CHECK(number(eval.out, "bits per byte") == doctest::Approx(loss / std::log(2)).epsilon(1e-3));  // a byte a token
    CHECK(holds(eval.out, "context 16, stride 16"));
    const Outcome strided = run(place, {"eval", "--model", "run", "--data", "text.txt", "--stride", "4"});
    CHECK(number(strided.out, "loss") < loss + 0.01);
    CHECK(std::abs(number(strided.out, "loss") - loss) < 0.3);
    for (const Words& more :
         {Words{}, Words{"--bf16-cache"}, Words{"--dtype", "bf16"}, Words{"--tokens", "5", "--chunk", "2"}}) {
      Words words = {"check-cache", "--model", "run"};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome check = run(place, words);
      CHECK_MESSAGE(check.status == 0, check.err);
      CHECK(holds(check.out, "token by token, padded"));
      CHECK(holds(check.out, "cached = recomputed within"));
    }
  }

  TEST_CASE("a second run in a folder needs leave; resume and overwrite are it") {
    const Place place;
    REQUIRE(place.train().status == 0);
    auto before = files_of(place);
    const Outcome refused = place.train();
    CHECK(refused.status == 1);
    CHECK(holds(refused.err, "holds a run; go on with --resume, start again with --overwrite"));
    CHECK(files_of(place) == before);
    const Outcome resumed = run(place, {"train", "--resume", "--out", "run", "--sample", "0"});
    CHECK_MESSAGE(resumed.status == 0, resumed.err);
    CHECK(files_of(place) == before);
    CHECK(place.train({"--overwrite", "--seed", "2"}).status == 0);
    CHECK(files_of(place).at("run/model.safetensors") != before.at("run/model.safetensors"));
    CHECK(run(place, {"train", "--data", "text.txt", "--config", "run/config.json", "--out", "again", "--sample", "0"})
              .status == 0);
    CHECK(files_of(place).at("again/model.safetensors") == files_of(place).at("run/model.safetensors"));
  }

  TEST_CASE("a signal saves the run, which then ends as one that was never stopped") {
    const Place place;
    const Words words = {"train", "--data",   "text.txt", "--config",    "small.json", "--steps",
                         "400",   "--sample", "0",        "--overwrite", "--out"};
    const auto into = [&](const std::string& out) {
      Words all = words;
      all.push_back(out);
      return all;
    };
    REQUIRE(run(place, into("straight")).status == 0);
    for (const int number : {SIGINT, SIGTERM}) {
      CAPTURE(number);
      const Program program(place, into("run"));
      // After the second evaluation it is in the middle of its steps.
      while (!holds(read_file(place / "stdout"), "step     10"))
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      program.signal(number);
      const Outcome outcome = program.wait();
      REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
      REQUIRE(holds(outcome.out, "go on with: tapestry train --resume --out run"));
      CHECK(read_checkpoint(place / "run/checkpoint.safetensors").state.step < 400);
      REQUIRE(run(place, {"train", "--resume", "--out", "run", "--sample", "0"}).status == 0);
      CHECK(read_file(place / "run/model.safetensors") == read_file(place / "straight/model.safetensors"));
    }
  }

  TEST_CASE("a run keeps the tokenizer it was trained with, wherever its file goes") {
    const Place place;
    const auto ok = [&](const Words& words) {
      const Outcome outcome = run(place, words);
      REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
      return outcome.out;
    };
    const std::string made =
        ok({"tokenizer", "train", "--data", "text.txt", "--vocab-size", "270", "--special", "<s>"});
    CHECK(holds(made, "tokenizer.json: 270 tokens (256 bytes, 13 merged, 1 special)"));
    write_file(place / "ids", ok({"tokenizer", "encode", "--tokenizer", ".", "--data", "text.txt"}));
    CHECK(ok({"tokenizer", "decode", "--tokenizer", "tokenizer.json", "--data", "ids"}) == small_text());
    write_file(place / "special", "<s>a");
    CHECK(ok({"tokenizer", "encode", "--tokenizer", ".", "--data", "special", "--special"}) == "269 97\n");
    CHECK(ok({"tokenizer", "encode", "--tokenizer", ".", "--data", "special"}) == "60 115 62 97\n");
    const Outcome wrong = run(place, {"tokenizer", "decode", "--tokenizer", ".", "--data", "text.txt"});
    CHECK(wrong.status == 1);
    CHECK(wrong.err == "tapestry: decode: 'line' is not an id; ids are whole numbers with white space between them\n");

    CHECK(place.train({"--tokenizer", "./tokenizer.json"}).status == 0);
    std::filesystem::remove(place / "tokenizer.json");
    CHECK(holds(ok({"generate", "--model", "run", "--prompt", "the cat", "--max-tokens", "5"}), "the cat"));
    CHECK(holds(ok({"train", "--resume", "--out", "run", "--sample", "0"}), "270 kinds (bpe)"));
    CHECK(holds(ok({"train", "--data", "text.txt", "--config", "run/config.json", "--out", "next", "--sample", "0"}),
                "270 kinds (bpe)"));
  }

  TEST_CASE("zoo train writes a model, also when it is stopped") {
    const Place place;
    const Words lstm = {"zoo", "train",    "lstm_lm", "--data",   "text.txt", "--batch", "2",    "--context",
                        "4",   "--hidden", "8",       "--sample", "5",        "--out",   "lstm", "--steps"};
    const auto with = [&](const char* steps) {
      Words words = lstm;
      words.emplace_back(steps);
      return words;
    };
    const Outcome whole = run(place, with("10"));
    CHECK_MESSAGE(whole.status == 0, whole.err);
    CHECK(holds(whole.out, "5 tokens it writes"));
    CHECK(files_of(place).contains("lstm/model.safetensors"));
    std::filesystem::remove_all(place / "lstm");
    const Program long_run(place, with("1000000000"));
    while (!holds(read_file(place / "stdout"), "LSTM")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    long_run.signal(SIGINT);
    const Outcome stopped = long_run.wait();
    CHECK_MESSAGE(stopped.status == 0, stopped.err);
    CHECK(files_of(place).contains("lstm/model.safetensors"));
    CHECK(run(place, {"zoo", "train", "lenet", "--seed", "-1"}).err ==
          "tapestry: zoo: --seed is -1; it must not be negative\n");
  }

  TEST_CASE("verify-resume proves itself on the given configuration and writes nothing") {
    const Place place;
    const auto before = files_of(place);
    const Outcome outcome = place.train({"--verify-resume"});
    CHECK_MESSAGE(outcome.status == 0, outcome.err);
    CHECK(holds(outcome.out, "equal bit for bit"));
    CHECK(files_of(place) == before);
  }

  TEST_CASE("bad input is one clear line and a status, and changes no file") {
    const Place place;
    REQUIRE(place.train().status == 0);
    write_file(place / "empty.txt", "");
    write_file(place / "short.txt", "the cat");
    write_file(place / "latin1.txt", std::string(200, 'a') + "\xE9" + std::string(200, 'b'));
    write_file(place / "unknown.json", R"({"model": {}, "training": {}, "speed": 1})");
    write_file(place / "broken.json", "{");
    const std::string model = read_file(place / "run/model.safetensors"),
                      checkpoint = read_file(place / "run/checkpoint.safetensors");
    const std::string config = read_file(place / "run/config.json");
    const auto damaged = [&](const std::string& name, const std::string& config_bytes, const std::string& model_bytes,
                             const std::string& checkpoint_bytes) {
      std::filesystem::create_directory(place / name);
      write_file(place / (name + "/config.json"), config_bytes);
      write_file(place / (name + "/model.safetensors"), model_bytes);
      write_file(place / (name + "/checkpoint.safetensors"), checkpoint_bytes);
    };
    damaged("cut", config, model.substr(0, model.size() - 5), checkpoint.substr(0, checkpoint.size() / 2));
    damaged("noise", "{}", "noise", std::string(1000, '\0'));
    std::string wider = config;
    wider.replace(wider.find("\"d_ff\": 32"), 10, "\"d_ff\": 64");
    damaged("other", wider, model, model);
    const auto before = files_of(place);

    struct Row {
      Words words;
      int status;
      std::string message;  ///< a part of the one line
    };
    const Words small = {"train", "--config", "small.json", "--out", "new"};
    const auto with = [&](Words more) {
      more.insert(more.begin(), small.begin(), small.end());
      return more;
    };
    const Row rows[] = {
        {with({"--data", "missing.txt"}), 1, "cannot read 'missing.txt'"},
        {with({"--data", "empty.txt"}), 1, "'empty.txt' is empty"},
        {with({"--data", "."}), 1, "is a directory"},
        {with({"--data", "short.txt"}), 1, "context 16 needs at least 17 tokens, the training part has 6"},
        {with({"--data", "latin1.txt"}), 1, "byte 0xe9 at offset 200 is not part of a UTF-8 character"},
        {with({"--data", "text.txt", "--context", "100000"}), 1, "context 100000 needs at least 100001 tokens"},
        {with({"--data", "text.txt", "--batch", "0"}), 1, "batch is 0"},
        {with({"--data", "text.txt", "--lr", "nan"}), 1, "lr is nan"},
        {with({"--data", "text.txt", "--tokenizer", "words"}), 1, "there are char and byte"},
        {with({"--data", "text.txt", "--tokenizer", "./missing.json"}), 1, "cannot read './missing.json'"},
        {with({"--data", "text.txt", "--tokenizer", "./broken.json"}), 1, "in './broken.json'"},
        {{"tokenizer", "train", "--data", "text.txt", "--vocab-size", "255"}, 1, "bpe: vocab_size is 255"},
        {with({"--data", "text.txt", "--threads", "0"}), 1, "0"},
        {{"train", "--data", "text.txt", "--config", "small.json", "--out", "text.txt/run"},
         1,
         "cannot make the folder"},
        {{"train", "--preset", "huge"}, 1, "there is no preset called 'huge'"},
        {{"train", "--config", "missing.json"}, 1, "cannot read 'missing.json'"},
        {{"train", "--config", "broken.json"}, 1, "not a JSON object"},
        {{"train", "--config", "unknown.json"}, 1, "unknown field speed"},
        {{"train", "--data", "text.txt", "--config", "run/config.json", "--tokenizer", "byte", "--out", "new"},
         1,
         "the byte tokenizer of this text has 256"},
        {{"train", "--resume", "--out", "nowhere"}, 1, "cannot read 'nowhere/checkpoint.safetensors'"},
        {{"train", "--resume", "--out", "cut"}, 1, "cut/checkpoint.safetensors"},
        {{"train", "--resume", "--out", "noise"}, 1, "noise/checkpoint.safetensors"},
        {{"train", "--resume", "--out", "other"}, 1, "it has no run description"},
        {{"train", "--resume", "--out", "run", "--data", "short.txt"},
         1,
         "'short.txt' is not the text this run was trained on"},
        {{"train", "--resume", "--lr", "1"}, 2, "--resume excludes --lr"},
        {{"train", "--steps", "many"}, 2, "many"},
        {{"train", "--steps", "99999999999999999999"}, 2, "--steps: the number 99999999999999999999 is too large"},
        {{"train", "--data", ""}, 2, "--data: the path is empty"},
        {{"train", "--data", "text.txt", "--sample", "-1"}, 1, "--sample is -1; it must not be negative"},
        {{"train", "--stepz", "3"}, 2, "--stepz"},
        {{"train", "--preset", "nano", "--config", "small.json"}, 2, "excludes"},
        {{}, 2, "subcommand"},
        {{"fly"}, 2, "subcommand"},
        {{"generate"}, 2, "--model is required"},
        {{"generate", "--model", "nowhere"}, 1, "cannot read 'nowhere/config.json'"},
        {{"generate", "--model", "cut"}, 1, "cut/model.safetensors"},
        {{"generate", "--model", "noise"}, 1, "is not the config of a run"},
        {{"generate", "--model", "other"}, 1, "gate_proj.weight is"},
        {{"generate", "--model", "run", "--prompt", "\xC3\xA9"}, 1, "U+00E9 'é', which is not among"},
        {{"generate", "--model", "run", "--prompt", "\xFF"}, 1, "byte 0xff at offset 0"},
        {{"generate", "--model", "run", "--temperature", "-1"}, 1, "temperature"},
        {{"generate", "--model", "run", "--top-p", "1.5"}, 1, "top_p"},
        {{"generate", "--model", "run", "--top-k", "-1"}, 1, "top_k"},
        {{"generate", "--model", "run", "--seed", "-1"}, 2, "--seed"},
        {{"generate", "--model", "run", "--max-tokens", "-1"}, 1, "max_tokens is -1"},
        {{"generate", "--model", "run", "--min-p", "2"}, 1, "min_p must lie in [0, 1]: it is 2"},
        {{"generate", "--model", "run", "--repetition-penalty", "0"}, 1, "repetition_penalty must be positive"},
        {{"generate", "--model", "run", "--stop", ""}, 1, "a stop string is empty"},
        {{"generate", "--model", "run", "--when-full", "wrap"}, 2, "--when-full: wrap not in {"},
        {{"generate", "--model", "run", "--when-full", "error", "--prompt", "the cat sat on mat"},
         1,
         "18 tokens after 0 are more than max_seq_len 16"},
        {{"chat", "--model", "run", "--template", "alpaca"},
         1,
         "there is no template called 'alpaca'; there are chatml, llama-3 and gemma"},
        {{"chat", "--model", "run"}, 1, "'run' has no chat template; choose one with --template"},
        {{"chat", "--model", "run", "--template", "chatml"}, 1, "the tokenizer has no special token <|im_end|>"},
        {{"eval", "--model", "run"}, 2, "--data is required"},
        {{"eval", "--model", "run", "--data", "missing.txt"}, 1, "cannot read 'missing.txt'"},
        {{"eval", "--model", "run", "--data", "text.txt", "--context", "17"},
         1,
         "context is 17; it must be 1 to max_seq_len 16"},
        {{"eval", "--model", "run", "--data", "text.txt", "--stride", "17"},
         1,
         "stride is 17; it must be 1 to the context 16"},
        {{"check-cache", "--model", "run", "--tokens", "17"}, 1, "tokens is 17; it must be 2 to max_seq_len 16"},
        {{"check-cache", "--model", "run", "--bound", "1e-12"}, 1, "cached and recomputed logits differ by"},
        {{"info", "--preset", "huge"}, 1, "there is no preset called 'huge'"},
        {{"info"}, 2, "is required"},
        {{"info", "--preset", "nano", "--batch", "-1"}, 1, "-1 rows of 64 tokens"},
        {{"info", "--preset", "nano", "--dtype", "f8"}, 1, "there are f32, bf16 and f64"},
        {{"info", "--preset", "nano", "--machine", "nowhere"}, 1, "cannot read 'nowhere'"},
        {{"info", "--preset", "nano", "--machine", "run/config.json"}, 1, "machine profile: threads is missing"},
    };
    for (const Row& row : rows) {
      std::string line;
      for (const std::string& word : row.words) line += word + " ";
      CAPTURE(line);
      const Outcome outcome = run(place, row.words);
      CAPTURE(outcome.err);
      CHECK(outcome.status == row.status);
      CHECK(outcome.err.starts_with("tapestry: "));
      CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
      CHECK(holds(outcome.err, row.message));
      CHECK(files_of(place) == before);
    }
  }

  TEST_CASE("help is no error, and a full disk is one") {
    const Place place;
    for (const Words& words :
         {Words{"--help"}, Words{"train", "--help"}, Words{"generate", "--help"}, Words{"chat", "--help"},
          Words{"eval", "--help"}, Words{"check-cache", "--help"}, Words{"info", "--preset", "nano"}}) {
      const Outcome outcome = run(place, words);
      CHECK(outcome.status == 0);
      CHECK(outcome.out.size() > 100);
    }
    CHECK(TrainConfig::from_json(run(place, {"info", "--preset", "small", "--print-config"}).out).model.d_model == 384);
    REQUIRE(place.train().status == 0);
    for (const Words& words : {Words{"generate", "--model", "run"}, Words{"info", "--model", "run"}}) {
      const Outcome full = Program(place, words, "/dev/full").wait();
      CHECK_MESSAGE((full.status == 1 && holds(full.err, "cannot write")), full.err);
    }
  }
}
