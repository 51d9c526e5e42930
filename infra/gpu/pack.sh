#!/usr/bin/env bash
# Packs the programs that a machine with a card and nothing else needs: reprise-lab, and the two
# servers of a dev stack for the runs that are killed. `make gpu-pack` builds them first. MODEL=FILE cuts a
# model, its GGUF file or the wheel with it, into parts beside them: .gpu/model.0, .gpu/model.1, …
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=.gpu
limit=$((52 << 20)) # of the 64 MiB that such a machine may take, with the repository
if [ -n "${MODEL:-}" ] && [ ! -f "$MODEL" ]; then
	echo "MODEL=$MODEL is no file: name a GGUF file, or the wheel that holds one" >&2
	exit 2
fi

mkdir -p "$folder/unpacked"
trap 'rm -rf "$folder/unpacked"' EXIT
cp -L "$1" "$folder/unpacked/reprise-lab"
cp -L bin/temporal bin/versitygw "$folder/unpacked/"
echo "packing the programs, some minutes"
XZ_OPT="--x86 --lzma2=preset=6,dict=192MiB" tar -C "$folder/unpacked" -cJf "$folder/.pack" reprise-lab temporal versitygw
size=$(wc -c < "$folder/.pack")
if [ "$size" -gt "$limit" ]; then
	echo "the pack has $size bytes, and $limit are allowed" >&2
	exit 1
fi
mv "$folder/.pack" "$folder/pack.tar.xz"
echo "$folder/pack.tar.xz: $size bytes"
if [ -n "${MODEL:-}" ]; then
	rm -f "$folder"/model.[0-9]
	split --bytes=40M --numeric-suffixes=0 --suffix-length=1 "$MODEL" "$folder/model."
	wc -c "$folder"/model.[0-9]
fi
