#!/usr/bin/env bash
# Runs ours and theirs alternately and prints every line, then the medians of both and of the ratios of each pair.
# Usage: alternate.sh lm|tape [--pairs N] [bench_lm or bench_tape options]; needs libtorch-dev and, for a fair libtorch, libopenblas0-openmp.
set -euo pipefail
bin=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../build/bench/bin" && pwd)
what=${1:-lm}
(($#)) && shift
pairs=5
[[ ${1:-} == --pairs ]] && { pairs=$2; shift 2; }
[[ -x $bin/torch_$what ]] || { echo "alternate.sh: torch_$what was not built; install libtorch-dev and run ./dev bench again" >&2; exit 1; }
# libtorch's own threads fight those of the pthread build of OpenBLAS; ours do not care.
openmp=$(find /usr/lib -path '*openblas-openmp/libopenblas.so.0' -print -quit)
for ((i = 0; i < pairs; ++i)); do
  LD_LIBRARY_PATH=${openmp%/*} "$bin/torch_$what" "$@"
  "$bin/bench_$what" "$@"
done | tee /dev/stderr | awk -F' [|] ' '
  # A line is "<program> <case> | <name> <number> <unit> | …"; lines of a pair differ in the program alone.
  function median(list, n,   i, j, t) {
    for (i = 2; i <= n; ++i)
      for (j = i; j > 1 && list[j] < list[j - 1]; --j) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return list[int((n + 1) / 2)]
  }
  {
    split($1, head, " ")
    for (i = 2; i <= NF; ++i) {
      if (split($i, part, " ") < 3 || part[3] !~ /^(ns|ms)$/) continue
      key = (head[2] ~ /^[a-z]+$/ ? head[2] " " : "") part[1]
      if (!(key in seen)) { seen[key] = part[3]; order[++keys] = key }
      value[head[1], key, ++count[head[1], key]] = part[2]
    }
  }
  END {
    for (k = 1; k <= keys; ++k) {
      key = order[k]
      n = count["tapestry", key]
      if (n == 0 || n != count["libtorch", key]) continue
      for (i = 1; i <= n; ++i) {
        ours[i] = value["tapestry", key, i]
        theirs[i] = value["libtorch", key, i]
        ratio[i] = theirs[i] / ours[i]
      }
      printf "%-14s libtorch %8.1f %s, tapestry %8.1f %s, ratio %.2f (medians of %d pairs)\n", key, median(theirs, n), seen[key], median(ours, n), seen[key], median(ratio, n), n
    }
  }'
