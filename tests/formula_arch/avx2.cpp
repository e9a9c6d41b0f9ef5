// The loops compiled for AVX2 and FMA (flags in ../CMakeLists.txt). Not the loops themselves. Next: rows.inc.
#include "rows.inc"

std::span<const formula_arch::Row> formula_arch::avx2_rows() { return rows; }
