#!/usr/bin/env bash
# Runs ours and theirs alternately and prints every line, then the median of the ratios of each pair.
# Usage: alternate.sh [--pairs N] [bench_lm options]; needs libtorch-dev and, for a fair libtorch, libopenblas0-openmp.
set -euo pipefail
bin=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../build/bench/bin" && pwd)
pairs=5
[[ ${1:-} == --pairs ]] && { pairs=$2; shift 2; }
[[ -x $bin/torch_lm ]] || { echo "alternate.sh: torch_lm was not built; install libtorch-dev and run ./dev bench again" >&2; exit 1; }
# libtorch's own threads fight those of the pthread build of OpenBLAS; ours do not care.
openmp=$(find /usr/lib -path '*openblas-openmp/libopenblas.so.0' -print -quit)
ms() { sed -n 's/.*| step \([0-9.]*\) ms.*/\1/p' <<<"$1"; }
ratios=()
for ((i = 0; i < pairs; ++i)); do
  theirs=$(LD_LIBRARY_PATH=${openmp%/*} "$bin/torch_lm" "$@")
  ours=$("$bin/bench_lm" "$@")
  printf '%s\n%s\n' "$theirs" "$ours"
  ratios+=("$(awk -v a="$(ms "$theirs")" -v b="$(ms "$ours")" 'BEGIN { printf "%.3f", a / b }')")
done
printf 'libtorch time / tapestry time: %s; median %s\n' "${ratios[*]}" "$(printf '%s\n' "${ratios[@]}" | sort -n | sed -n "$((pairs / 2 + 1))p")"
