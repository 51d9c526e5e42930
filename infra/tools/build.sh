#!/usr/bin/env bash
# Builds one pinned tool from its module here, and says how it is getting on.
#
#   infra/tools/build.sh MODULE-FOLDER PACKAGE OUTPUT NOTE [LDFLAG…]
#
# The output appears under its name only when it is whole: an interrupted
# build leaves nothing that a later make would take for the tool.
set -euo pipefail

module=$1 package=$2 output=$(realpath -m "$3") note=$4
shift 4
name=$(basename "$package")
compile=$(realpath "$(dirname "${BASH_SOURCE[0]}")/compile.sh")

cd "$(dirname "${BASH_SOURCE[0]}")/$module"
mkdir -p "$(dirname "$output")"

# One at a time, even under make -j: each build uses all cores, and two big
# links beside each other want 4 GiB.
exec 9>"$(dirname "$output")/.lock"
flock 9
printf '==> %s: %s\n' "$name" "$note"
partial="$output.partial"
trap 'rm -f "$partial"' EXIT

started=$SECONDS
GOFLAGS='-mod=readonly -trimpath' "$compile" "$name" "$partial" "$package" -ldflags="-s -w $*"
mv "$partial" "$output"
# Earlier pins' builds of the tool are of no use any more.
find "$(dirname "$output")" -maxdepth 1 -name "$name-*" ! -name "$(basename "$output")" -delete
printf '    %s: built in %d s\n' "$name" $((SECONDS - started))
