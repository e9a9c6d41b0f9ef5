// The loops compiled for SSE2, which every x86-64 machine has (flags in ../CMakeLists.txt). Not the loops themselves. Next: rows.inc.
#include "rows.inc"

std::span<const formula_arch::Row> formula_arch::sse2_rows() { return rows; }
