#!/usr/bin/env bash
# Says early, and all at once, what this machine lacks for a build.
set -uo pipefail

problems=()
system="$(uname -s) $(uname -m)"
if [ "$system" != "Linux x86_64" ]; then
	problems+=("this is $system; supported is Linux on x86-64 (the pinned PJRT plugin is built for it alone)")
fi

if ! command -v go >/dev/null; then
	problems+=("go is not in PATH; Go 1.26 or newer is needed: https://go.dev/dl/")
else
	# go's own words matter where a go.mod asks for a newer toolchain than can be had.
	if version=$(go env GOVERSION 2>&1); then
		release=${version#go}
		major=${release%%.*} rest=${release#*.}
		minor=${rest%%[!0-9]*}
		if ! [[ $major =~ ^[0-9]+$ && $minor =~ ^[0-9]+$ ]]; then
			: # a development version names no release; let the build decide
		elif ((major < 1 || (major == 1 && minor < 26))); then
			problems+=("this is $version; Go 1.26 or newer is needed: https://go.dev/dl/")
		fi
	else
		problems+=("go does not run here: $version")
	fi
	compiler=$(go env CC 2>/dev/null)
	compiler=${compiler:-gcc}
	if ! command -v "${compiler%% *}" >/dev/null; then
		problems+=("no C compiler: ${compiler%% *} is not in PATH (XLA is reached through cgo); on Debian: apt-get install gcc libc6-dev")
	elif [ "$(go env CGO_ENABLED 2>/dev/null)" != 1 ]; then
		problems+=("cgo is off (CGO_ENABLED=0); XLA is reached through it: unset CGO_ENABLED")
	fi
fi

if [ ${#problems[@]} -gt 0 ]; then
	printf 'reprise cannot be built here:\n' >&2
	printf '  * %s\n' "${problems[@]}" >&2
	exit 1
fi
