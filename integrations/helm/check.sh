#!/bin/sh
# helm check CHART [FLAG...]: the arguments are those of helm template.
set -e
objects=$(mktemp)
trap 'rm -f "$objects"' EXIT
"${HELM_BIN:-helm}" template "$@" > "$objects"
# Helm removes its flag --namespace from the arguments, and sets HELM_NAMESPACE.
# shellcheck disable=SC2086 # the flags are words
anykind check --namespace "${HELM_NAMESPACE:-default}" ${ANYKIND_CHECK_FLAGS} - < "$objects"
