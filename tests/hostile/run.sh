#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hostile clients against spud serve: sockets only, python3's standard library. SPUD_BIN and
# SPUD_MODEL choose what is served. Last line: 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../server_env.sh
. tests/server_env.sh
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/hostile.py"
