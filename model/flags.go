package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pinnedFlags make machines agree and runs repeatable. On CPU the instruction
// set is the oldest one worth having, so that a newer machine computes the same
// bits; on CUDA only deterministic kernels run, and none is chosen by a stopwatch.
const pinnedFlags = "--xla_cpu_max_isa=AVX2 --xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"

// mergeFlags merges lists of XLA flags into one: of a flag given twice the last
// one holds, and the flags are sorted, so that one meaning has one spelling.
func mergeFlags(lists ...string) (string, error) {
	merged := map[string]string{}
	for _, list := range lists {
		for _, flag := range strings.Fields(list) {
			if !strings.HasPrefix(flag, "--") {
				return "", fmt.Errorf("XLA flag %q does not begin with --", flag)
			}
			name, _, _ := strings.Cut(flag, "=")
			merged[name] = flag
		}
	}
	flags := make([]string, 0, len(merged))
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		flags = append(flags, merged[name])
	}
	return strings.Join(flags, " "), nil
}

// flagValue finds a flag's value in a merged list, "" if it is not there.
func flagValue(flags, name string) string {
	for _, flag := range strings.Fields(flags) {
		if n, v, _ := strings.Cut(flag, "="); n == name {
			return v
		}
	}
	return ""
}
