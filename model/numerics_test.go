package model

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewritePrograms = flag.Bool("rewrite-programs", false, "write the programs' hashes for a raised Numerics")

const programsFile = "testdata/programs.txt"

// The programs of one Numerics are the same in every build: a build that lowers other ones
// serves another queue, so it never takes the work of a run that began before. After
// Numerics was raised:
//
//	go test ./model -run TestProgramsOfNumerics -args -rewrite-programs
func TestProgramsOfNumerics(t *testing.T) {
	untied := tiny()
	untied.TieEmbeddings = false
	qwen3, llama := tiny(), tiny()
	qwen3.Family, llama.Family = Qwen3, Llama
	llama.Pad = ID(3)
	half := tinyShapes
	half.ComputeDtype = "bfloat16"
	learning := Shapes{MicroBatch: 3, Sequence: 7}
	kept, keptLearning := tinyShapes, learning
	kept.Keep, keptLearning.Keep = true, true
	blocks := Shapes{GenerateRows: 4, BlockRows: 8, PromptTokens: 5, MaxNewTokens: 9}
	appends := Shapes{GenerateRows: 4, PromptTokens: 9, MaxNewTokens: 3, Append: AppendShapes{Widest: 9, Before: 5, Tokens: 4}}
	var got strings.Builder
	fmt.Fprintf(&got, "numerics %d\n", Numerics)
	for _, of := range []struct {
		name   string
		config Config
		shapes Shapes
	}{
		{"tied", tiny(), tinyShapes}, {"untied", untied, tinyShapes}, {"bfloat16", tiny(), half}, {"critic", tiny().Critic(), learning},
		{"qwen3", qwen3, tinyShapes}, {"llama", llama, tinyShapes},
		{"kept", tiny(), kept}, {"kept-critic", tiny().Critic(), keptLearning},
		{"lora", tinyLoRA(), tinyShapes}, {"lora-bfloat16", tinyLoRA(), half}, {"lora-critic", tinyLoRA().Critic(), learning},
		{"kept-lora", tinyLoRA(), kept}, {"blocks", tiny(), blocks}, {"appends", tiny(), appends},
	} {
		p, err := testDevice(t).Programs(of.config, nil, of.shapes)
		require.NoError(t, err)
		hashes, err := p.Hashes()
		require.NoError(t, err)
		p.Free()
		for _, program := range slices.Sorted(maps.Keys(hashes)) {
			fmt.Fprintf(&got, "%s/%s %s\n", of.name, program, hashes[program])
		}
	}
	b, err := os.ReadFile(programsFile)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(b), "\n")
	held, err := strconv.Atoi(strings.TrimPrefix(first, "numerics "))
	require.NoError(t, err)
	if *rewritePrograms {
		require.Greater(t, Numerics, held, "raise Numerics in model/fingerprint.go first")
		require.NoError(t, os.WriteFile(programsFile, []byte(got.String()), 0o644))
		return
	}
	require.Equal(t, string(b), got.String(), "this build lowers other programs: raise Numerics in model/fingerprint.go, then write %s anew", programsFile)
}
