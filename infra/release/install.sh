#!/bin/sh
# Installs a release of Reprise, or removes it. It needs sh, tar, gzip and coreutils; for a URL, curl or wget.
set -eu

usage() {
	cat <<'TEXT'
install.sh [--prefix FOLDER] [FROM]   install Reprise
install.sh --uninstall [--prefix FOLDER]

FROM is a folder (an unpacked release, or one with the archive and SHA256SUMS), an archive with SHA256SUMS beside it,
or a URL of either; without it, the folder of this script. The default prefix is ~/.local: the programs come to
FOLDER/lib/reprise, links to them to FOLDER/bin. Nothing is installed whose SHA-256 is not that of SHA256SUMS.
TEXT
}

say() { printf '%s\n' "$*"; }
fail() {
	printf 'install.sh: %s\n' "$*" >&2
	exit 1
}

prefix=${HOME:-}/.local
from='' uninstall=no
while [ $# -gt 0 ]; do
	case $1 in
	--prefix)
		[ $# -ge 2 ] || fail '--prefix needs a folder'
		prefix=$2
		shift
		;;
	--prefix=*) prefix=${1#--prefix=} ;;
	--uninstall) uninstall=yes ;;
	-h | --help)
		usage
		exit 0
		;;
	-*) fail "unknown flag $1 (--help has the flags)" ;;
	*)
		[ -z "$from" ] || fail "one source at a time: $from and $1"
		from=$1
		;;
	esac
	shift
done
[ -n "$prefix" ] || fail '--prefix needs a folder'
case $prefix in
/*) ;;
*) prefix=$(pwd)/$prefix ;;
esac
home=$prefix/lib/reprise
names='reprise reprise-lab temporal'

# ours tells whether a folder is an installed release.
ours() { [ -f "$1/SHA256SUMS" ] && [ -f "$1/VERSION" ] && [ -f "$1/reprise" ]; }

# linked tells whether a name in bin is a link that this script made.
linked() { [ -L "$prefix/bin/$1" ] && [ "$(readlink "$prefix/bin/$1")" = "../lib/reprise/$1" ]; }

if [ "$uninstall" = yes ]; then
	[ -z "$from" ] || fail '--uninstall takes no source'
	[ -e "$home" ] || fail "there is no $home: nothing is installed below $prefix"
	ours "$home" || fail "$home is no release of Reprise: it stays"
	version=$(cat "$home/VERSION")
	for name in $names; do
		if linked "$name"; then rm "$prefix/bin/$name"; fi
	done
	rm -rf "$home"
	say "Reprise $version is removed from $prefix."
	say "What runs have written stays: folders .reprise where they were started, and ${XDG_CACHE_HOME:-${HOME:-~}/.cache}/reprise."
	exit 0
fi

system="$(uname -s) $(uname -m)"
[ "$system" = 'Linux x86_64' ] || fail "this is $system; releases are for Linux on x86-64"
platform=linux-amd64

if [ -e "$home" ] && ! ours "$home"; then
	fail "$home is there and is no release of Reprise: move it, or name another --prefix"
fi
for name in reprise reprise-lab; do
	if [ -e "$prefix/bin/$name" ] && ! linked "$name"; then
		fail "$prefix/bin/$name is there and is not of a release: move it, or name another --prefix"
	fi
done

mkdir -p "$prefix/lib" "$prefix/bin"
work=$(mktemp -d "$prefix/lib/.reprise.XXXXXX")
# What is replaced comes back, if the installation ends before the new one is there.
trap '[ -e "$home" ] || [ ! -e "$work/old" ] || mv "$work/old" "$home"; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fetch() { # URL FILE
	say "fetching $1"
	if command -v curl >/dev/null; then
		curl -fsSL --retry 3 -o "$2" "$1" || fail "cannot fetch $1"
	elif command -v wget >/dev/null; then
		wget -q -O "$2" "$1" || fail "cannot fetch $1"
	else
		fail 'a URL needs curl or wget'
	fi
}

# archive_in prints the name of the archive for this platform in a SHA256SUMS.
archive_in() {
	while read -r _ name; do
		case $name in
		*/*) ;;
		reprise-*-"$platform".tar.gz) printf '%s\n' "$name" && return ;;
		esac
	done <"$1"
	fail "$1 names no archive for $platform"
}

# check holds a file against the line of its name in a SHA256SUMS.
check() { # SUMS FILE NAME
	[ -f "$1" ] || fail "there is no SHA256SUMS beside $3: without it nothing is installed"
	want=''
	while read -r sum name; do
		if [ "$name" = "$3" ]; then want=$sum; fi
	done <"$1"
	[ -n "$want" ] || fail "SHA256SUMS has no line for $3"
	say "checking $3"
	is=$(sha256sum "$2")
	is=${is%% *}
	[ "$is" = "$want" ] || fail "$3 has SHA-256 $is, and SHA256SUMS says $want: it is damaged, or another"
}

unpack() { # ARCHIVE
	say "unpacking to $home"
	mkdir "$work/unpacked"
	tar -xzf "$1" -C "$work/unpacked" --no-same-owner || fail "cannot unpack $1"
	for folder in "$work"/unpacked/*; do
		ours "$folder" || fail "$1 is no release of Reprise"
		tree=$folder
	done
}

tree=''
if [ -z "$from" ]; then
	from=$(dirname "$0")
fi
case $from in
http://* | https://* | file://*)
	case $from in
	*.tar.gz)
		base=${from%/*} name=${from##*/}
		fetch "$base/SHA256SUMS" "$work/SHA256SUMS"
		;;
	*)
		base=${from%/}
		fetch "$base/SHA256SUMS" "$work/SHA256SUMS"
		name=$(archive_in "$work/SHA256SUMS")
		;;
	esac
	fetch "$base/$name" "$work/archive"
	check "$work/SHA256SUMS" "$work/archive" "$name"
	unpack "$work/archive"
	;;
*)
	[ -e "$from" ] || fail "there is no $from"
	if [ -d "$from" ] && ! ours "$from"; then
		[ -f "$from/SHA256SUMS" ] || fail "$from has neither a release nor an archive with SHA256SUMS"
		from=$from/$(archive_in "$from/SHA256SUMS")
	fi
	if [ -d "$from" ]; then
		say "copying to $home"
		mkdir "$work/copy"
		# Only what SHA256SUMS names: the folder may have got other files since.
		while read -r _ name; do
			case /$name/ in
			*/../* | //*) fail "$from/SHA256SUMS names $name" ;;
			esac
			mkdir -p "$work/copy/$(dirname "$name")"
			cp -p "$from/$name" "$work/copy/$name" || fail "$from is not whole"
		done <"$from/SHA256SUMS"
		cp "$from/SHA256SUMS" "$work/copy/SHA256SUMS"
		tree=$work/copy
	else
		check "$(dirname "$from")/SHA256SUMS" "$from" "$(basename "$from")"
		unpack "$from"
	fi
	;;
esac
[ -n "$tree" ] || fail "$from has no release"
say 'checking every file'
(cd "$tree" && sha256sum -c SHA256SUMS >/dev/null) || fail "a file of $from is not what SHA256SUMS says"
version=$(cat "$tree/VERSION")
"$tree/reprise" version >/dev/null ||
	fail "reprise does not run here (its words are above): it needs the GNU C library 2.34 or newer, as in Debian 12 or Ubuntu 22.04"

if [ -e "$home" ]; then
	say "replacing Reprise $(cat "$home/VERSION")"
	mv "$home" "$work/old"
fi
mv "$tree" "$home"
for name in $names; do
	if [ -e "$prefix/bin/$name" ] && ! linked "$name"; then
		say "$prefix/bin/$name is another program and stays; the release's is $home/$name"
		continue
	fi
	ln -sf "../lib/reprise/$name" "$prefix/bin/$name"
done

say "Reprise $version is installed: the programs in $home, links in $prefix/bin."
if command -v ldd >/dev/null; then
	ldd "$home/pjrt_c_api_cpu_plugin.so" 2>/dev/null | while read -r library _ is _; do
		if [ "$is" = not ]; then say "Missing on this machine: $library (on Debian and Ubuntu: apt-get install libstdc++6)"; fi
	done
fi
case :${PATH:-}: in
*:"$prefix/bin":*) ;;
*) say "$prefix/bin is not in PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
say 'Next: reprise demo (half a minute; it writes to .reprise in the folder where it is called).'
