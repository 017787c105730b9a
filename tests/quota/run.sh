#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Under a CPU quota of one core and of two, with every --threads: the number of threads that was
# chosen, and the rates. SPUD_BIN and SPUD_MODEL choose what runs. Skips, and says so, where no
# quota can be set. Last line: 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=../server_env.sh
. tests/server_env.sh
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/quota.py" "$@"
