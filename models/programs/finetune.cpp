// `tapestry finetune`: low-rank adapters of a model trained on a text, and nothing else.
// Not here: training from nothing (train.cpp).
// Next: ../../nn/lora.h.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "../../autograd/error.h"
#include "../../nn/lora.h"
#include "../../nn/visitor.h"
#include "../training/text_model.h"
#include "../training/trainer.h"
#include "../transformer/hf/adapter.h"
#include "program.h"
#include "stop_signal.h"

namespace tapestry::programs {
namespace {

struct FinetuneOptions {
  std::string model, data, out;
  LoraOptions lora;
  int64_t steps = 200, batch = 4, context = 0, seed = 1;
  double lr = 2e-4, held_out = 0.1;
  bool bf16 = false;
};

TrainConfig training(const FinetuneOptions& o, const TransformerConfig& model) {
  TrainConfig c;
  c.model = model;
  c.model.vocab_size = 0;  // that of the tokenizer; the model may have rows for more
  c.context = o.context > 0 ? o.context : std::min<int64_t>(model.max_seq_len, 256);
  c.batch = o.batch;
  c.steps = o.steps;
  c.lr = o.lr;
  c.lr_min = o.lr / 10;
  c.warmup = std::max<int64_t>(1, o.steps / 20);
  c.weight_decay = 0;
  c.held_out = o.held_out;
  c.seed = o.seed;
  return c;
}

void finetune(const FinetuneOptions& o) {
  TextModel base = load_text_model(o.model, {.dtype = o.bf16 ? DType::bf16 : DType::f32});
  Transformer& model = *base.model;
  const TrainConfig config = training(o, model.config);
  const TrainingText text = TrainingText::read(o.data, std::move(base.tokenizer), o.held_out);
  manual_seed(static_cast<uint64_t>(o.seed));
  const auto paths = add_lora(model, o.lora);
  model.train();
  fmt::print("{} of {} parameters are trained, in {} adapters\n", count_parameters(model, true),
             count_parameters(model), paths.size());
  const LossFn loss = [&](const Tensor& tokens, const Tensor& targets) {
    return model.loss(tokens, targets, {.ignore_index = ignored_target, .reduction = Reduction::sum});
  };
  Trainer trainer(
      config, text, LanguageModel{base.model, loss, loss},
      CosineWithWarmup{
          .lr_max = config.lr, .lr_min = config.lr_min, .warmup_steps = config.warmup, .total_steps = config.steps});
  fmt::print("held-out loss before: {:.4f}\n", trainer.evaluate(true).mean());
  std::fflush(stdout);
  {
    const StopSignal stop;  // ends early, and saves
    const int64_t interval = std::max<int64_t>(1, o.steps / 10);
    while (!trainer.finished() && !StopSignal::asked()) {
      const StepReport report = trainer.step();
      if (report.step % interval == 0)
        fmt::print("step {:5d}  loss {:.4f}  gradient norm {:.3f}  rate {:.2e}\n", report.step, report.loss,
                   report.grad_norm, report.lr);
      std::fflush(stdout);
    }
  }
  fmt::print("held-out loss after {} steps: {:.4f}\n", trainer.state().step, trainer.evaluate(true).mean());
  hf::save_adapter(o.out, model, base.family.empty() ? hf::family_for(model.config) : hf::family_named(base.family),
                   o.model);
  fmt::print("{0} holds the adapters; try them with: tapestry generate --model {1} --adapter {0}\n", o.out, o.model);
}

}  // namespace

void add_finetune(CLI::App& app) {
  CLI::App* command = app.add_subcommand("finetune", "train low-rank adapters of a model on a text");
  const auto o = std::make_shared<FinetuneOptions>();
  command->add_option("--model", o->model, "folder of a run or of a published model")->type_name("DIR")->required();
  command->add_option("--data", o->data, "text to train on; without it, this library's own sources")->type_name("FILE");
  command->add_option("--out", o->out, "folder for the adapters, in PEFT's form")->type_name("DIR")->required();
  command->add_option("--rank", o->lora.rank, "of every adapter")->type_name("N")->capture_default_str();
  command->add_option("--alpha", o->lora.alpha, "the product is scaled by alpha/rank")
      ->type_name("X")
      ->capture_default_str();
  command->add_option("--dropout", o->lora.dropout, "of what an adapter reads")->type_name("P")->capture_default_str();
  command->add_option("--targets", o->lora.targets, "patterns of the projections that get one")
      ->type_name("PATTERN")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--steps", o->steps, "updates")->type_name("N")->capture_default_str();
  command->add_option("--batch", o->batch, "windows a step")->type_name("N")->capture_default_str();
  command->add_option("--context", o->context, "tokens of a window; 0: 256, or what the model can read")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--lr", o->lr, "largest learning rate")->type_name("X")->capture_default_str();
  command->add_option("--held-out", o->held_out, "share of the text that is only evaluated on")
      ->type_name("X")
      ->capture_default_str();
  command->add_option("--seed", o->seed, "of adapters and batches")->type_name("N")->capture_default_str();
  command->add_flag("--bf16", o->bf16, "keep the frozen weights in bf16");
  add_threads_option(*command);
  command->callback([o] { finetune(*o); });
}

}  // namespace tapestry::programs
