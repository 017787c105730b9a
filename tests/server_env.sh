# SPDX-License-Identifier: Apache-2.0
# Sourced by the suites that need a running server: sets SPUD_BIN (the program) and SPUD_MODEL (what
# to serve). Runs in the repository's root.
if [ -z "${SPUD_BIN:-}" ]; then
  # The release build if there is one, else whichever was built last.
  SPUD_BIN=$(ls -t build/release/bin/spud build/*/bin/spud 2>/dev/null | head -n 1 || true)
  [ -x build/release/bin/spud ] && SPUD_BIN=$PWD/build/release/bin/spud
fi
if [ ! -x "${SPUD_BIN:-}" ]; then
  echo "no spud program: build it (cmake --preset release && cmake --build --preset release)" >&2
  exit 1
fi
case $SPUD_BIN in /*) ;; *) SPUD_BIN=$PWD/$SPUD_BIN ;; esac
if [ -z "${SPUD_MODEL:-}" ]; then
  SPUD_MODEL=${SPUD_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/spud/models}/smollm2-135m-instruct-q4_1.gguf
  if [ ! -e "$SPUD_MODEL" ]; then
    maker=$(dirname "$SPUD_BIN")/make_tiny_model
    [ -x "$maker" ] || { echo "no model: tools/fetch-model smollm2, or build make_tiny_model" >&2; exit 1; }
    echo "no real model at $SPUD_MODEL: a made-up one is served; cases that need more are skipped" >&2
    SPUD_MODEL=$PWD/build/tiny-model.gguf
    "$maker" "$SPUD_MODEL"
    export SPUD_MODEL_IS_MADE_UP=1
  fi
fi
export SPUD_BIN SPUD_MODEL
