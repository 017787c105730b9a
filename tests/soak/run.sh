#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A server at full load with clients of every bad kind, for as long as asked (--seconds, 60 unless
# said; 3600 for the hour of docs/performance.md): memory, threads, pages and descriptors must stay
# where they are. Exits 1 when something does not. SPUD_BIN and SPUD_MODEL choose
# what is served. Last line: 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../server_env.sh
. tests/server_env.sh
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/soak.py" "$@"
