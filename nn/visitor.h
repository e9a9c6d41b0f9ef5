// What is done with a module's members: listed, counted, frozen, converted. Each is a visitor of a few lines; yours can
// be, too. Not here: saving and loading (state_dict.h), printing (summary.h). Next: state_dict.h.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "module.h"

namespace tapestry {

/// fn(path, member) for every parameter, buffer or module, in the order of visit(). A member listed under two names
/// comes twice.
void for_each_parameter(Module& m, const std::function<void(const std::string& path, Parameter& p)>& fn);
void for_each_buffer(Module& m, const std::function<void(const std::string& path, Buffer& b)>& fn);
void for_each_module(Module& m, const std::function<void(const std::string& path, Module& m)>& fn);

/// Handles on all parameters, each once, under its first name, in the order of visit(): what an optimizer takes.
std::vector<std::pair<std::string, Tensor>> named_parameters(const Module& m);
std::vector<std::pair<std::string, Tensor>> named_buffers(const Module& m);

/// Number of elements of all parameters.
int64_t count_parameters(const Module& m, bool trainable_only = false);
/// Freezes (false) or trains all parameters of m.
void requires_grad_(const Module& m, bool value);
/// Drops the gradients of all parameters.
void zero_grad(const Module& m);
/// Converts every floating parameter and buffer, each into a new leaf: convert before an optimizer takes the handles.
/// DTypeError unless floating.
void to(Module& m, DType dtype);

}  // namespace tapestry
