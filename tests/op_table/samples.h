// Tensors from the descriptors of rows: seeded values in any dtype and memory layout, and the same values as arrays.
// Next: samples.cpp.
#pragma once

#include "row.h"

namespace tapestry::op_table {

/// How the same values may lie in memory. What lies between and around them is NaN, or an index far out of range.
enum class Layout : uint8_t { contiguous, transposed, stepped, offset, backwards, expanded };
inline constexpr Layout strided_layouts[] = {Layout::transposed, Layout::stepped, Layout::offset, Layout::backwards,
                                             Layout::expanded};
const char* name_of(Layout layout);

/// Inputs of a sample: real ones require a gradient if `grad`. With Layout::expanded the first dim longer than 1 of every
/// input repeats one slice.
std::vector<Tensor> make_inputs(const OpRow& row, const Sample& sample, DType dtype, Layout layout = Layout::contiguous,
                                bool grad = true);

Array array_of(const Tensor& x);
/// What the row's reference gives for these inputs.
Arrays reference_of(const OpRow& row, const Sample& sample, std::span<const Tensor> inputs);
/// row.fn with the random streams at their start, so that ops that draw numbers draw the same ones.
Tensors call(const OpRow& row, const Sample& sample, std::span<const Tensor> inputs);

/// The samples to run: all, or the first alone when TAPESTRY_SMALL_SAMPLES is set.
std::vector<Sample> samples_of(const OpRow& row);
bool small_samples();

/// The empty string, or where and by how much a result differs from its reference.
std::string compare(std::span<const Tensor> results, const Arrays& reference, double bound);

}  // namespace tapestry::op_table
