#!/bin/sh
# Asks a machine with a card what it computes, and how fast: reprise-lab gpu. It needs what
# `make gpu-pack` has packed (or bin/ of a built checkout), NVIDIA's driver, and a CUDA plugin:
# that of `make plugin PLUGIN=cuda13`, or of a Python that has jax-cuda13-pjrt. It needs no Go,
# no make, no network and no root. Arguments go to reprise-lab gpu.
#
#	PLUGIN   the plugin, by name or path (default: cuda13)
#	OUT      the folder of the results (default: gpu-results)
#	KEEP     the folder of what a later call goes on from: the model, compiled programs, runs (default: .gpu/kept)
#
# The parts smol-bandit and smol-frozenlake train the model whose files are .gpu/model.0, .gpu/model.1, …, as
# make gpu-pack MODEL=FILE writes them; another one is named with --model FILE...
set -eu
cd "$(dirname "$0")/../.."
pack=.gpu/pack.tar.xz
program=bin/reprise-lab
if [ -s "$pack" ]; then
	folder=$(mktemp -d "${TMPDIR:-/tmp}/reprise-programs-XXXXXX")
	trap 'rm -rf "$folder"' EXIT
	tar -xJf "$pack" -C "$folder" 2>/dev/null ||
		python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$pack" "$folder"
	program=$folder/reprise-lab
	export REPRISE_TEMPORAL="$folder/temporal" REPRISE_VERSITYGW="$folder/versitygw"
elif [ ! -x "$program" ]; then
	echo "there is neither $pack nor $program: run make gpu-pack or make build where Go is" >&2
	exit 2
fi
case " $* " in
*" --model"*) ;;
*)
	for part in .gpu/model.[0-9]; do
		if [ -s "$part" ]; then
			set -- "$@" --model "$part"
		fi
	done
	;;
esac
status=0
"$program" gpu --plugin "${PLUGIN:-cuda13}" --out "${OUT:-gpu-results}" --keep "${KEEP:-.gpu/kept}" "$@" || status=$?
exit $status
