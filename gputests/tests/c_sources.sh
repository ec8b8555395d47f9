#!/bin/sh
# C sources of programs, compiled and run on the simulated driver: each call answers as recorded.
# Usage: c_sources.sh GRANULE LIBRARY_FOLDER CUDA_INCLUDE WORK FILE...
set -eu
granule=$1 library=$2 include=$3 work=$4
shift 4
mkdir -p "$work"
for file; do
  for program in $(sed -n 's/^program \([A-Za-z0-9_.-]*\).*/\1/p' "$file"); do
    "$granule" show --c "$work/repro.c" --only "$program" "$file"
    ${CC:-cc} -Wall -Wextra -Werror -o "$work/repro" "$work/repro.c" -I"$include" -L"$library" -lcuda
    # The end is the program's own count of answers that differ.
    "$granule" sim --report-only -- "$work/repro" > "$work/out" 2> "$work/err" || true
    if ! grep -q '^0 differences$' "$work/out"; then
      echo "$file: $program"
      grep '^DIFFERS' "$work/out" || cat "$work/err"
      exit 1
    fi
    echo "ok $program"
  done
done
