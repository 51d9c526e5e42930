#!/usr/bin/env bash
# Prints the path of the temporal on PATH if a demo can use it: if it is of the pinned version, or a newer one with the same first
# number. Nothing is printed where there is none.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/temporal"
found=$(command -v temporal) || exit 0
pinned=$(awk '$1 == "github.com/temporalio/cli" { print substr($2, 2) }' go.mod)
# "temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)"
[[ $(timeout 10 "$found" --version 2>/dev/null) =~ ^temporal\ version\ ([0-9]+\.[0-9]+\.[0-9]+)\ \(Server ]] || exit 0
version=${BASH_REMATCH[1]}
[ "${version%%.*}" = "${pinned%%.*}" ] || exit 0
[ "$(printf '%s\n' "$pinned" "$version" | sort -V | head -1)" = "$pinned" ] || exit 0
printf '%s\n' "$found"
