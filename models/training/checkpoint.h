// A checkpoint: all that a run needs to go on as if it had never stopped, in one safetensors file.
// Not here: the folder it lies in (run_folder.h); model.safetensors, an export of the weights alone.
// Next: log.h.
#pragma once

#include <memory>
#include <string>

#include "trainer.h"

namespace tapestry {

/// Weights ("model.…"), moments and options ("optimizer.…"), and in the metadata, as JSON: the state, the
/// configuration, the tokenizer, and which text it was. Written atomically: a kill leaves the old file or the new one.
void save_checkpoint(const std::string& path, const Trainer& trainer);

/// A checkpoint read and checked, but in no trainer yet.
struct Checkpoint {
  TrainConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
  std::string source;  ///< of the text, as TrainingText has it
  uint64_t text_hash = 0;
  TrainState state;
  std::map<std::string, Tensor> model, optimizer;
};
/// IoError if there is no such file; FormatError, naming it and the reason, if it is no checkpoint.
Checkpoint read_checkpoint(const std::string& path);
/// FormatError if `text` is not the one the run was trained on.
void check_text(const Checkpoint& checkpoint, const TrainingText& text);
/// Puts a trainer of the same config and text into the checkpoint's state. FormatError if the text is another one or
/// the tensors do not fit.
void restore(Trainer& trainer, const Checkpoint& checkpoint);

}  // namespace tapestry
