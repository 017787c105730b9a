#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Answers must not depend on what else the server does: each request alone, then all of them under
# load, on servers that batch, chunk, cache and preempt differently. SPUD_BIN and SPUD_MODEL choose
# what is served. Last line: 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../server_env.sh
. tests/server_env.sh
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/exactness.py" "$@"
