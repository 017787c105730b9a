#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a server holds in memory at full load stays within --memory; a limit that is too small is
# refused with the number that is enough. SPUD_BIN and SPUD_MODEL choose what is served. Last line:
# 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../server_env.sh
. tests/server_env.sh
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/memory.py" "$@"
