#!/usr/bin/env bash
# Compiles one program in the working directory, and says how much is left.
#
#   infra/tools/compile.sh NAME OUTPUT PACKAGE [FLAG-OF-GO-BUILD…]
set -euo pipefail

name=$1 output=$2 package=$3
shift 3

# A line for every package would bury the terminal, and silence for minutes looks like a hang: one counter instead, in place where
# there is a terminal, else a line for each twentieth.
tty=0
[ -t 1 ] && tty=1
modules=0 packages=0 total=0 shown=0 began=$SECONDS

show() {
	local text="    $name: $modules modules downloaded" share=$modules
	if ((total)); then
		share=$((packages * 100 / total))
		text="    $name: $packages of $total packages compiled, $share %"
		((packages < 20 || packages == total)) || text+=", about $(((SECONDS - began) * (total - packages) / packages + 1)) s left"
		((packages < total)) || text+=", now linking"
	fi
	if ((tty)); then
		printf '\r%s\033[K' "$text"
	elif ((share >= shown + (total ? 5 : 50) || packages && packages == total)); then
		shown=$share
		printf '%s\n' "$text"
	fi
}

# Go says what it downloads and compiles, and nothing else, in lines of these forms. What is not compiled yet is known once the
# modules are there.
{
	stale=$(go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$package" | wc -l)
	printf 'total %d\n' "$stale"
	go build -v -o "$output" "$@" "$package"
} 2>&1 | {
	while IFS= read -r line; do
		case $line in
		'go: downloading '*) modules=$((modules + 1)) && show ;;
		'total '*) total=${line#total } shown=0 began=$SECONDS ;;
		*' '* | '') printf '%s\n' "$line" ;;
		*) packages=$((packages + 1)) && show ;;
		esac
	done
	((!tty || modules + packages == 0)) || printf '\n'
}
