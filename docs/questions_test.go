package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/retrieve"
)

// questions are what a newcomer asks, in his words, each with the page that answers it.
var questions = []struct{ asks, page string }{
	{"how do I install it without Go", "install.md"},
	{"train on my own environment written in Python", "tutorial.md"},
	{"which algorithm should I use first, GRPO or PPO", "algorithms.md"},
	{"my worker ran out of memory, what does the error OutOfMemory mean", "troubleshooting.md"},
	{"what happens when a machine is preempted or a worker dies", "going-on.md"},
	{"can the policy call tools such as a calculator or an MCP server", "tools.md"},
	{"I know verl, what is the same field called here", "coming-from.md"},
	{"run it on Kubernetes with a Helm chart", "deploying.md"},
	{"train Qwen2.5 on one NVIDIA card, a quickstart", "card.md"},
	{"how much does durability cost in time", "results/benchmarks.md"},
	{"use a language model as a judge for rewards", "rewards.md"},
	{"train adapters with LoRA and export them for PEFT", "lora.md"},
}

// A search for the words of a newcomer's question finds the page that answers it first, by BM25 over the sections of the pages.
func TestQuestionsFindTheirPages(t *testing.T) {
	var of []string
	var sections []retrieve.Document
	for _, page := range pages(t) {
		if strings.Contains(read(t, page), "<!-- Generated") && page != "troubleshooting.md" {
			continue // tables for looking up
		}
		title, _, _ := strings.Cut(read(t, page), "\n")
		for section := range strings.SplitSeq(read(t, page), "\n## ") {
			of = append(of, page)
			sections = append(sections, retrieve.Document{ID: fmt.Sprintf("%04d", len(of)), Text: title + "\n" + section})
		}
	}
	index := retrieve.New(sections, retrieve.Anserini)
	for _, q := range questions {
		var found []string
		for _, hit := range index.Search(q.asks, 3) {
			found = append(found, of[hit.Document])
		}
		t.Logf("%s: %s", q.asks, strings.Join(found, ", "))
		require.Equal(t, q.page, found[0], q.asks)
	}
}

// What is written by hand has at most 45,000 words, as `wc -w` counts them, and no page of it more than 300 lines. Generated pages say
// so in their head.
func TestPagesAreShort(t *testing.T) {
	words := 0
	for _, page := range append(pages(t), "../README.md") {
		text := read(t, page)
		if strings.Contains(text, "<!-- Generated") {
			continue
		}
		words += len(strings.Fields(text))
		require.LessOrEqual(t, strings.Count(text, "\n"), 300, page)
	}
	require.LessOrEqual(t, words, 45_000)
}
