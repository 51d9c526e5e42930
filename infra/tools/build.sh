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

cd "$(dirname "${BASH_SOURCE[0]}")/$module"
mkdir -p "$(dirname "$output")"

# One at a time, even under make -j: each build uses all cores, and two big
# links beside each other want 4 GiB.
exec 9>"$(dirname "$output")/.lock"
flock 9
printf '==> %s: %s\n' "$name" "$note"
partial="$output.partial"
trap 'rm -f "$partial"' EXIT

# A line for every package would bury the terminal, and silence for minutes
# looks like a hang: one counter instead, in place where there is a terminal.
tty=0
[ -t 1 ] && tty=1
started=$SECONDS
GOFLAGS=-mod=readonly go build -v -trimpath -ldflags="-s -w $*" -o "$partial" "$package" 2>&1 |
	awk -v name="$name" -v tty="$tty" '
		function show() {
			if (tty) printf "\r    %s: %d modules downloaded, %d packages compiled ", name, modules, packages
			else if ((modules + packages) % 200 == 0) printf "    %s: %d modules downloaded, %d packages compiled\n", name, modules, packages
			fflush()
		}
		/^go: downloading / { modules++; show(); next }
		/^[^ ]+$/           { packages++; show(); next }
		                    { if (tty) printf "\n"; print; fflush() }
		END                 { if (tty && modules + packages) printf "\n" }'
mv "$partial" "$output"
# Earlier pins' builds of the tool are of no use any more.
find "$(dirname "$output")" -maxdepth 1 -name "$name-*" ! -name "$(basename "$output")" -delete
printf '    %s: built in %d s\n' "$name" $((SECONDS - started))
