// The loops compiled for AVX-512 (flags in ../CMakeLists.txt). Not the loops themselves. Next: rows.inc.
#include "rows.inc"

std::span<const formula_arch::Row> formula_arch::avx512_rows() { return rows; }
