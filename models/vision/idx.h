// IDX, the file format of MNIST and its kin: a shape and bytes, often compressed with gzip.
// Not here: what the bytes mean (labelled_images.h).
// Next: labelled_images.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../autograd/shape.h"

namespace tapestry {

/// Unsigned bytes in row-major order.
struct IdxFile {
  Shape shape;
  std::vector<uint8_t> bytes;
};

/// Reads an IDX file of unsigned bytes, compressed with gzip or not (LeCun's description: two zeros, the type 8, the rank, the sizes as big-endian 32-bit
/// numbers, the data). IoError for a file that cannot be read, or that is compressed where the library was built without zlib; FormatError, naming the
/// file and the reason, for one that breaks the format or is shorter or longer than its header says.
IdxFile read_idx(const std::string& path);

}  // namespace tapestry
