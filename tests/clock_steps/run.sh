#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server whose wall clock jumps by an hour fifty times a second, and back: no request, limit or
# timeout may notice. SPUD_BIN and SPUD_MODEL choose what is served. Skips, and says so, without a C compiler.
# Last line: 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../server_env.sh
. tests/server_env.sh
compiler=${CC:-$(command -v cc || command -v gcc || command -v clang || true)}
if [ -z "$compiler" ]; then
  echo "no C compiler for the clock that jumps"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
mkdir -p build
SPUD_CLOCK_SHIM=$PWD/build/clock_shim.so
"$compiler" -O2 -Wall -Wextra -shared -fPIC -o "$SPUD_CLOCK_SHIM" "$here/clock_shim.c"
export SPUD_CLOCK_SHIM PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/clock_steps.py" "$@"
