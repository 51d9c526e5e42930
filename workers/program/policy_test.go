package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model/safetensors"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// execute runs a command as the program would.
func execute(cmd *cobra.Command, stdin string, args ...string) (stdout, stderr string, err error) {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, errOut bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return out.String(), errOut.String(), err
}

// goldenFolders are the model folders with a golden.json: the repository's (qwen2-tiny is put together
// from the two packages that keep its halves), and the folder that REPRISE_GOLDENS names, or
// the models in it.
func goldenFolders(t *testing.T) map[string]string {
	t.Helper()
	folders := map[string]string{}
	for _, name := range []string{"qwen2-tiny", "qwen3-tiny", "llama-tiny"} {
		folders[name] = goldenFolderOf(t, name)
	}
	if root := os.Getenv("REPRISE_GOLDENS"); root != "" {
		for _, pattern := range []string{"", "*"} {
			found, err := filepath.Glob(filepath.Join(root, pattern, "model.safetensors"))
			require.NoError(t, err)
			for _, weights := range found {
				folders["REPRISE_GOLDENS/"+filepath.Base(filepath.Dir(weights))] = filepath.Dir(weights)
			}
		}
	}
	return folders
}

func goldenFolder(t *testing.T) string { return goldenFolderOf(t, "qwen2-tiny") }

func goldenFolderOf(t *testing.T, name string) string {
	t.Helper()
	folder := t.TempDir()
	for _, from := range []string{"../../model/tokenizer/testdata/" + name, "../../model/testdata/" + name} {
		entries, err := os.ReadDir(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue // this one is whole in the other package
		}
		require.NoError(t, err)
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(from, e.Name()))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(folder, e.Name()), b, 0o600))
		}
	}
	return folder
}

type golden struct {
	Encode []struct {
		Text    string
		IDs     []int32
		Decoded string
	}
	Chat struct {
		Messages []tokenizer.Message
		Text     string
		IDs      []int32
	}
	Forward struct {
		IDs         [][]int32
		LogProbs    [][]float64
		EntropyMean float64 `json:"entropy_mean"`
	}
	Greedy struct {
		Prompt, New []int32
	}
}

func readGolden(t *testing.T, folder string) golden {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "golden.json"))
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(b, &g))
	require.NotEmpty(t, g.Encode)
	require.NotEmpty(t, g.Forward.IDs)
	return g
}

// runPolicy runs a policy command that must succeed, and reads its one object.
func runPolicy(t *testing.T, into any, folder, name string, input any, flags ...string) string {
	t.Helper()
	stdin, err := json.Marshal(input)
	require.NoError(t, err)
	stdout, stderr, err := execute(policyCommand(), string(stdin), append([]string{name, "--model", folder}, flags...)...)
	require.NoError(t, err)
	require.Empty(t, stderr)
	dec := json.NewDecoder(strings.NewReader(stdout))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(into))
	require.False(t, dec.More())
	return stdout
}

func TestPolicyTokenizerGolden(t *testing.T) {
	for name, folder := range goldenFolders(t) {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, folder)
			var texts, decoded []string
			var ids [][]int32
			for _, e := range g.Encode {
				texts, decoded, ids = append(texts, e.Text), append(decoded, e.Decoded), append(ids, e.IDs)
			}
			var encoded struct{ IDs [][]int32 }
			out := runPolicy(t, &encoded, folder, "encode", map[string]any{"texts": texts})
			require.Equal(t, ids, encoded.IDs)
			require.NotContains(t, out, "null", "an empty text has an empty list")

			var back struct{ Texts []string }
			runPolicy(t, &back, folder, "decode", map[string]any{"ids": ids})
			require.Equal(t, decoded, back.Texts)

			var chat struct {
				Text string
				IDs  []int32
			}
			runPolicy(t, &chat, folder, "template", map[string]any{"messages": g.Chat.Messages, "add_generation_prompt": true})
			require.Equal(t, g.Chat.Text, chat.Text)
			require.Equal(t, g.Chat.IDs, chat.IDs)
			runPolicy(t, &chat, folder, "template", map[string]any{"messages": g.Chat.Messages})
			require.NotEqual(t, g.Chat.Text, chat.Text)
			require.True(t, strings.HasPrefix(g.Chat.Text, chat.Text), "without the generation prompt")
		})
	}
}

// thinking is a chat template in the manner of Qwen3's: it drops the reasoning of earlier
// turns, and closes an empty one if thinking is off.
const thinking = `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' %}{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{{ hint }}{% endif %}`

func TestPolicyTemplateVariables(t *testing.T) {
	folder := goldenFolderOf(t, "qwen3-tiny")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "chat_template.jinja"), []byte(thinking), 0o600))
	const begin = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
	for _, c := range []struct {
		more map[string]any
		want string
	}{
		{nil, begin},
		{map[string]any{"enable_thinking": true}, begin},
		{map[string]any{"enable_thinking": false}, begin + "<think>\n\n</think>\n\n"},
		{map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": false, "hint": "so"}}, begin + "<think>\n\n</think>\n\nso"},
	} {
		input := map[string]any{"messages": []tokenizer.Message{{Role: "user", Content: "Hello"}}, "add_generation_prompt": true}
		maps.Copy(input, c.more)
		var chat struct {
			Text string
			IDs  []int32
		}
		runPolicy(t, &chat, folder, "template", input)
		require.Equal(t, c.want, chat.Text)
	}
	_, _, err := execute(policyCommand(), `{"messages":[],"chat_template_kwargs":{"messages":1}}`, "template", "--model", folder)
	require.ErrorContains(t, err, `"messages" is not a variable's name`)
}

func TestPolicyLogProbsGolden(t *testing.T) {
	plugintest.Needs(t)
	for name, folder := range goldenFolders(t) {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, folder)
			var got struct{ LogProbs, Entropy [][]json.Number }
			runPolicy(t, &got, folder, "logprobs", map[string]any{"ids": g.Forward.IDs})
			require.Len(t, got.LogProbs, len(g.Forward.IDs))
			require.Len(t, got.Entropy, len(g.Forward.IDs))
			sum, n := 0.0, 0
			for i, row := range g.Forward.IDs {
				require.Len(t, got.LogProbs[i], len(row)-1)
				require.Len(t, got.Entropy[i], len(row))
				for j, v := range got.LogProbs[i] {
					require.InDelta(t, g.Forward.LogProbs[i][j], number(t, v), 2e-5)
				}
				for _, v := range got.Entropy[i] {
					sum += number(t, v)
					n++
				}
			}
			require.InDelta(t, g.Forward.EntropyMean, sum/float64(n), 2e-5)
		})
	}
}

// number reads a number that must be the shortest that gives its float32.
func number(t *testing.T, v json.Number) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(v.String(), 32)
	require.NoError(t, err)
	shortest, err := json.Marshal(float32(f))
	require.NoError(t, err)
	require.Equal(t, string(shortest), v.String())
	return f
}

func TestPolicyGenerateGolden(t *testing.T) {
	plugintest.Needs(t)
	for name, folder := range goldenFolders(t) {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, folder)
			n := strconv.Itoa(len(g.Greedy.New))
			type output struct{ IDs [][]int32 }
			var greedy output
			// Prompts may have different lengths.
			runPolicy(t, &greedy, folder, "generate", map[string]any{"ids": [][]int32{g.Greedy.Prompt[:3], g.Greedy.Prompt}},
				"--temperature", "0", "--max-new-tokens", n, "--ignore-eos")
			require.Len(t, greedy.IDs[0], len(g.Greedy.New))
			require.Equal(t, g.Greedy.New, greedy.IDs[1])

			if name != "qwen2-tiny" && !strings.HasPrefix(name, "REPRISE_GOLDENS") {
				return // the rest does not depend on the family
			}
			// Without --ignore-eos a row ends with the first end-of-sequence token.
			stopped := withEOS(t, folder, g.Greedy.New[4])
			first := 0
			for g.Greedy.New[first] != g.Greedy.New[4] {
				first++
			}
			var ended output
			runPolicy(t, &ended, stopped, "generate", map[string]any{"ids": [][]int32{g.Greedy.Prompt}}, "--max-new-tokens", n)
			require.Equal(t, [][]int32{g.Greedy.New[:first+1]}, ended.IDs)

			sample := func(seed string) (out output) {
				runPolicy(t, &out, folder, "generate", map[string]any{"ids": [][]int32{g.Greedy.Prompt, g.Greedy.Prompt}},
					"--temperature", "1", "--max-new-tokens", "12", "--ignore-eos", "--seed", seed)
				return out
			}
			one := sample("1")
			require.Equal(t, one, sample("1"))
			require.NotEqual(t, one, sample("2"))
			require.NotEqual(t, one.IDs[0], one.IDs[1], "each row has draws of its own")
		})
	}
}

// The goldens of adapters are folders beside their base models'.
func TestPolicyAdapterGolden(t *testing.T) {
	plugintest.Needs(t)
	folders := []string{"../../model/testdata/lora-qwen2-tiny", "../../model/testdata/lora-qwen3-tiny"}
	if root := os.Getenv("REPRISE_GOLDENS"); root != "" {
		found, err := filepath.Glob(filepath.Join(root, "*", "adapter_config.json"))
		require.NoError(t, err)
		for _, file := range found {
			folders = append(folders, filepath.Dir(file))
		}
	}
	for _, adapter := range folders {
		t.Run(adapter, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(adapter, "golden.json"))
			require.NoError(t, err)
			var g struct {
				Base     string
				IDs      [][]int32
				Without  [][]float64 `json:"logprobs_base"`
				LogProbs [][]float64
			}
			require.NoError(t, json.Unmarshal(b, &g))
			base := filepath.Join(adapter, "..", g.Base)
			if strings.HasPrefix(adapter, "../../model") {
				base = goldenFolderOf(t, g.Base)
			}
			scores := func(want [][]float64, flags ...string) {
				t.Helper()
				var got struct{ LogProbs, Entropy [][]float64 }
				runPolicy(t, &got, base, "logprobs", map[string]any{"ids": g.IDs}, flags...)
				for i := range want {
					require.InDeltaSlice(t, want[i], got.LogProbs[i], 2e-5)
				}
			}
			scores(g.Without)
			scores(g.LogProbs, "--adapter", adapter)

			type output struct{ IDs [][]int32 }
			continued := func(flags ...string) (out output) {
				runPolicy(t, &out, base, "generate", map[string]any{"ids": g.IDs}, append(flags, "--max-new-tokens", "8", "--ignore-eos")...)
				return out
			}
			require.NotEqual(t, continued(), continued("--adapter", adapter))

			_, _, err = execute(policyCommand(), `{"ids":[[1]]}`, "logprobs", "--model", base, "--adapter", base)
			require.ErrorContains(t, err, "open folder of adapters "+base+": adapter_config.json")
		})
	}
}

// withEOS is a copy of a model folder with another end-of-sequence token.
func withEOS(t *testing.T, folder string, id int32) string {
	t.Helper()
	other := t.TempDir()
	for _, name := range append([]string{"model.safetensors"}, tokenizer.FileNames...) {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // older folders have it
		}
		require.NoError(t, err)
		if name == "generation_config.json" {
			b, err = json.Marshal(map[string]any{"eos_token_id": id})
			require.NoError(t, err)
		}
		require.NoError(t, os.WriteFile(filepath.Join(other, name), b, 0o600))
	}
	return other
}

// Weights that are not finite give log-probs that JSON has no numbers for.
func TestPolicyLogProbsNotFinite(t *testing.T) {
	plugintest.Needs(t)
	folder := goldenFolder(t)
	path := filepath.Join(folder, "model.safetensors")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := safetensors.Decode(b)
	require.NoError(t, err)
	for i, tensor := range file.Tensors {
		if tensor.Name == "model.norm.weight" {
			v, err := tensor.Float32s()
			require.NoError(t, err)
			v[0] = float32(math.NaN())
			file.Tensors[i] = safetensors.F32(tensor.Name, tensor.Shape, v)
		}
	}
	b, err = safetensors.Encode(file.Tensors, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	stdout, _, err := execute(policyCommand(), `{"ids":[[1,2]]}`, "logprobs", "--model", folder)
	require.NoError(t, err)
	require.JSONEq(t, `{"logprobs":[["NaN"]],"entropy":[["NaN","NaN"]]}`, stdout)
}

func TestPolicyErrors(t *testing.T) {
	folder := goldenFolder(t)
	none := t.TempDir()
	broken := withEOS(t, folder, 1)
	require.NoError(t, os.WriteFile(filepath.Join(broken, "tokenizer.json"), []byte("{"), 0o600))
	large := withEOS(t, folder, 1)
	config, err := os.ReadFile(filepath.Join(large, "config.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(large, "config.json"), bytes.Replace(config, []byte(`"vocab_size": 600`), []byte(`"vocab_size": 601`), 1), 0o600))
	for _, c := range []struct {
		name, command, stdin string
		flags                []string
		want                 []string
	}{
		{"empty", "encode", " \n", nil, []string{"standard input: is empty", `{"texts":["Hello"]}`}},
		{"not JSON", "encode", `{"texts":[}`, nil, []string{"byte 11", "not JSON"}},
		{"cut", "encode", `{"texts":["a"`, nil, []string{"not JSON", "unexpected end"}},
		{"text after the end", "encode", `{"texts":[]} {}`, nil, []string{"not JSON", "after top-level value"}},
		{"not UTF-8", "encode", "{\"texts\":[\"\xff\"]}", nil, []string{"not UTF-8"}},
		{"an array", "encode", `["a"]`, nil, []string{"found an array, want an object"}},
		{"missing", "encode", `{}`, nil, []string{`key "texts" is missing`}},
		{"unknown and missing", "encode", `{"text":["a"],"x":{"y":[1]}}`, nil, []string{`unknown key "text"`, `unknown key "x"`, `key "texts" is missing`}},
		{"case", "decode", `{"IDs":[[1]]}`, nil, []string{`unknown key "IDs"`, `key "ids" is missing`}},
		{"twice", "decode", `{"ids":[[1]],"ids":[[2]]}`, nil, []string{`key "ids" stands twice`}},
		{"null", "decode", `{"ids":null}`, nil, []string{"ids: found null, want an array"}},
		{"null row", "decode", `{"ids":[[1],null]}`, nil, []string{"ids[1]: found null, want an array"}},
		{"a flat list", "decode", `{"ids":[1,2]}`, nil, []string{"ids[0]: found 1, want an array"}},
		{"a string id", "decode", `{"ids":[[1,"2"]]}`, nil, []string{`ids[0][1]: found "2", want a token id`}},
		{"a fraction", "decode", `{"ids":[[1.0]]}`, nil, []string{"ids[0][0]: found 1.0, want a token id: an integer"}},
		{"negative", "decode", `{"ids":[[-1]]}`, nil, []string{"ids[0][0]: found -1"}},
		{"huge", "decode", `{"ids":[[4294967296]]}`, nil, []string{"ids[0][0]: found 4294967296"}},
		{"no such token", "decode", `{"ids":[[0],[1,599]]}`, nil, []string{"ids[1][1]: 599 is no token"}},
		{"text of another type", "encode", `{"texts":["a",{"b":1}]}`, nil, []string{"texts[1]: found an object, want a string"}},
		{"message without content", "template", `{"messages":[{"role":"user"}]}`, nil, []string{`messages[0]: key "content" is missing`}},
		{"message with more", "template", `{"messages":[{"role":"user","content":"","name":"n"}]}`, nil, []string{`messages[0]: unknown key "name"`}},
		{"flag of another type", "template", `{"messages":[],"add_generation_prompt":1}`, nil, []string{"add_generation_prompt: found 1, want true or false"}},
		{"lengths", "logprobs", `{"ids":[[1,2],[1]]}`, nil, []string{"ids[1]: 1 tokens, ids[0] has 2"}},
		{"empty row", "logprobs", `{"ids":[[1],[]]}`, nil, []string{"ids[1]: no token"}},
		{"beyond the vocabulary", "logprobs", `{"ids":[[1,600]]}`, nil, []string{"ids[0][1]: 600, the model's vocabulary has 600 ids"}},
		{"too long", "logprobs", `{"ids":[[` + strings.Repeat("1,", 512) + `1]]}`, nil, []string{"ids[0]: 513 tokens", "max_position_embeddings is 512"}},
		{"too long with new tokens", "generate", `{"ids":[[1]]}`, []string{"--max-new-tokens", "512"}, []string{"ids[0]: 513 tokens"}},
		{"no new tokens", "generate", `{"ids":[[1]]}`, []string{"--max-new-tokens", "0"}, []string{"--max-new-tokens is 0"}},
		{"temperature", "generate", `{"ids":[[1]]}`, []string{"--temperature", "-1"}, []string{"--temperature is -1"}},
		{"temperature that is none", "generate", `{"ids":[[1]]}`, []string{"--temperature", "NaN"}, []string{"--temperature is NaN"}},
		{"no plugin", "generate", `{"ids":[[1]]}`, []string{"--plugin", "/nowhere/plugin.so"}, []string{"/nowhere/plugin.so"}},
		{"an argument", "encode", `{}`, []string{"text"}, []string{"unknown command"}},
		{"no folder", "encode", `{"texts":[]}`, []string{"--model", none + "/x"}, []string{none + "/x", "no such file"}},
		{"empty folder", "encode", `{"texts":[]}`, []string{"--model", none}, []string{none, "tokenizer.json is missing"}},
		{"no weights", "logprobs", `{"ids":[[1]]}`, []string{"--model", none}, []string{none, "config.json"}},
		{"broken tokenizer", "decode", `{"ids":[]}`, []string{"--model", broken}, []string{"tokenizer.json"}},
		{"weights of another shape", "logprobs", `{"ids":[[1]]}`, []string{"--model", large}, []string{"model.embed_tokens.weight"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, _, err := execute(policyCommand(), c.stdin, append([]string{c.command, "--model", folder}, c.flags...)...)
			require.Error(t, err)
			require.Empty(t, stdout)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.Less(t, len(err.Error()), 2000)
		})
	}
	_, _, err = execute(policyCommand(), "", "encode")
	require.ErrorContains(t, err, `"model" not set`)
	_, _, err = execute(policyCommand(), "", "guess")
	require.ErrorContains(t, err, `unknown command "guess"`)
	out, _, err := execute(policyCommand(), "")
	require.NoError(t, err)
	require.Contains(t, out, "logprobs")
}

// No rows are no error, and nothing outside the folder is read.
func TestPolicyEdges(t *testing.T) {
	plugintest.Needs(t)
	folder := goldenFolder(t)
	for command, want := range map[string]string{
		"decode": `{"texts":[]}`, "logprobs": `{"logprobs":[],"entropy":[]}`, "generate": `{"ids":[]}`,
	} {
		stdout, _, err := execute(policyCommand(), `{"ids":[]}`, command, "--model", folder)
		require.NoError(t, err)
		require.Equal(t, want+"\n", stdout)
	}
	stdout, _, err := execute(policyCommand(), `{"ids":[[7]]}`, "logprobs", "--model", folder)
	require.NoError(t, err)
	require.Contains(t, stdout, `{"logprobs":[[]],"entropy":[[`)

	linked := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(folder, "tokenizer.json"), filepath.Join(linked, "tokenizer.json")))
	_, _, err = execute(policyCommand(), `{"texts":[]}`, "encode", "--model", linked)
	require.ErrorContains(t, err, "escapes")
}
