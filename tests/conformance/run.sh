#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The conformance suite: the official openai client against spud serve. Needs the program (SPUD_BIN,
# else the newest of build/*/bin/spud) and python3 with venv; takes SmolLM2 if it was fetched, else
# makes a tiny random model. Arguments go to pytest. Last line: 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"

# shellcheck source=../server_env.sh
. "$root/tests/server_env.sh"

venv=$root/build/conformance-venv
stamp=$venv/.stamp-$(sha256sum "$here/requirements.txt" | cut -c1-16)
if [ ! -e "$stamp" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  touch "$stamp"
fi
export PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$here" "$@"
