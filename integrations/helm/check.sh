#!/bin/sh
# helm check CHART [FLAG...]: the arguments are those of helm template.
set -e
objects=$(mktemp)
trap 'rm -f "$objects"' EXIT
"${HELM_BIN:-helm}" template "$@" > "$objects"
# shellcheck disable=SC2086 # the flags are words
anykind check ${ANYKIND_CHECK_FLAGS} - < "$objects"
