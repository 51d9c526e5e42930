package tokenizer

import (
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestLegal(t *testing.T) {
	tok := load(t, "testdata/qwen2-tiny")
	require.Equal(t, 508, tok.VocabSize())
	legal, err := tok.Legal(600)
	require.NoError(t, err)
	require.Len(t, legal, 600)
	n := 0
	for _, ok := range legal {
		if ok {
			n++
		}
	}
	require.Equal(t, 508, n)
	require.True(t, legal[507])
	require.False(t, legal[508])
	_, err = tok.Legal(507)
	require.ErrorIs(t, err, ErrVocabulary)
	require.EqualError(t, err, "tokenizer does not match the model's vocabulary: its ids go up to 507 (\"<|im_end|>\"), the model has 507 rows in its embedding")
}

func TestEndOfTurn(t *testing.T) {
	base := readFolder(t, "testdata/qwen2-tiny")
	for name, c := range map[string]struct {
		files     map[string]string
		eos, ends []int32
	}{
		"generation config first": {map[string]string{"generation_config.json": `{"eos_token_id":[507,505]}`}, []int32{507, 505}, []int32{507, 505}},
		"closing token first":     {map[string]string{"generation_config.json": `{"eos_token_id":505}`}, []int32{505}, []int32{507, 505}},
		"config next":             {map[string]string{"generation_config.json": `{}`, "config.json": `{"eos_token_id":505}`}, []int32{505}, []int32{507, 505}},
		"tokenizer config last":   {map[string]string{"generation_config.json": `{}`, "config.json": `{"eos_token_id":null}`}, []int32{507}, []int32{507}},
		"none":                    {map[string]string{"generation_config.json": `{}`, "config.json": `{}`, "tokenizer_config.json": `{"eos_token":null}`}, nil, []int32{507}},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(base)
			for name, content := range c.files {
				files[name] = []byte(content)
			}
			tok, err := Load(files)
			require.NoError(t, err)
			require.Equal(t, c.eos, tok.EOS())
			require.Equal(t, c.ends, tok.EndOfTurn())
		})
	}
}

func TestChatTemplateInConfig(t *testing.T) {
	base := readFolder(t, "testdata/qwen2-tiny")
	for _, config := range []string{
		`{"chat_template":"{{ messages[0].content }}!"}`,
		`{"chat_template":[{"name":"tool_use","template":"no"},{"name":"default","template":"{{ messages[0].content }}!"}]}`,
	} {
		tok, err := Load(map[string][]byte{"tokenizer.json": base["tokenizer.json"], "tokenizer_config.json": []byte(config)})
		require.NoError(t, err)
		text, _, err := tok.Template([]Message{{Role: "user", Content: "hi"}}, false)
		require.NoError(t, err)
		require.Equal(t, "hi!", text)
		_, err = tok.Closing()
		require.Error(t, err)
	}
	tok, err := Load(map[string][]byte{"tokenizer.json": base["tokenizer.json"]})
	require.NoError(t, err)
	_, _, err = tok.Template(nil, false)
	require.ErrorIs(t, err, ErrNoTemplate)
}

func TestUnusableFiles(t *testing.T) {
	base := readFolder(t, "testdata/qwen2-tiny")
	edit := func(old, new string) []byte {
		s := string(base["tokenizer.json"])
		require.Contains(t, s, old)
		return []byte(strings.Replace(s, old, new, 1))
	}
	for name, c := range map[string]struct {
		file    string
		content []byte
		says    string
	}{
		"truncated":   {"tokenizer.json", base["tokenizer.json"][:9999], "cut off after"},
		"wordpiece":   {"tokenizer.json", edit(`"BPE"`, `"WordPiece"`), "WordPiece"},
		"huge id":     {"tokenizer.json", edit(`"!": 0`, `"!": 99999999999`), "not in [0"},
		"negative id": {"tokenizer.json", edit(`"!": 0`, `"!": -1`), "not in [0"},
		"shared id":   {"tokenizer.json", edit(`"!": 0`, `"!": 1`), "same id"},
		"unk":         {"tokenizer.json", edit(`"unk_token": null`, `"unk_token": "[UNK]"`), `unk_token "[UNK]"`},
		"normalizer":  {"tokenizer.json", edit(`"NFC"`, `"Lowercase"`), "Lowercase"},
		"decoder": {"tokenizer.json", edit(`"ByteLevel",
    "add_prefix_space": true`, `"WordPiece",
    "add_prefix_space": true`), "decoder"},
		"eos":             {"generation_config.json", []byte(`{"eos_token_id":508}`), "508"},
		"eos type":        {"config.json", []byte(`{"eos_token_id":"x"}`), "config.json"},
		"eos token":       {"tokenizer_config.json", []byte(`{"eos_token":"</s>"}`), "</s>"},
		"config":          {"tokenizer_config.json", []byte(`[]`), "tokenizer_config.json"},
		"no default":      {"tokenizer_config.json", []byte(`{"chat_template":[{"name":"rag","template":""}]}`), "default"},
		"template syntax": {"chat_template.jinja", []byte("{% for %}"), "chat template"},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(base)
			files[c.file] = c.content
			if c.file != "generation_config.json" {
				files["generation_config.json"] = []byte("{}")
			}
			if c.file == "tokenizer_config.json" {
				delete(files, "chat_template.jinja")
				files["config.json"] = []byte("{}")
			}
			_, err := Load(files)
			require.ErrorIs(t, err, ErrFiles)
			require.ErrorContains(t, err, c.says)
		})
	}
	_, err := Load(nil)
	require.ErrorIs(t, err, ErrFiles)
}

// Any text comes back: its ids' bytes are the normalized text's bytes.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "Hello  world\n\n x", "<|im_end|>", "é\u0301\u0085 ", "\xff\xe2\x88", "#_XPO√S\n", "   "} {
		f.Add(s)
	}
	tok := load(f, "testdata/spaces")
	f.Fuzz(func(t *testing.T, s string) {
		plain := tok.EncodePlain(s)
		require.Equal(t, tok.normalize(lossyUTF8(s), false), tok.Decode(plain))
		for _, id := range plain {
			require.Less(t, id, int32(600), "special tokens are off")
		}
		if utf8.ValidString(s) && !strings.Contains(s, "<") && !strings.Contains(s, "é") {
			require.Equal(t, append([]int32{}, plain...), append([]int32{}, tok.Encode(s)...))
		}
	})
}

func FuzzLoad(f *testing.F) {
	base := readFolder(f, "testdata/qwen2-tiny")
	f.Add(base["tokenizer.json"], base["chat_template.jinja"])
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a",["a","a"]]},"decoder":{"type":"ByteLevel"}}`), []byte("{{ x }"))
	f.Add([]byte(`{"added_tokens":[{"id":2,"content":"b","normalized":true,"rstrip":true,"lstrip":true,"single_word":true}],
		"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"Regex":"[ a]"},"content":"▁"}]},
		"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits"},{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithNext","invert":true},
		{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}]},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},
		{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
		"model":{"type":"BPE","byte_fallback":true,"unk_token":"a","fuse_unk":true,"ignore_merges":true,"vocab":{"a":0,"<0x0A>":1},"merges":[]}}`), []byte(""))
	for _, template := range []string{
		`{{ "a" * 100000000000 }}`, `{{ "a,b".split(",")[0]["LJust"](99999999999, 32) }}`, `{% set ns = namespace(x=1) %}{% set ns.x = [ns] %}{{ ns }}`,
		`{% set x %}{% for i in range(16000) %}{{ i|string|replace("", "aaaaaaaaaaaaaaaa") }}{% endfor %}{% endset %}{{ [x, x]|join(x) }}`,
	} {
		f.Add(base["tokenizer.json"], []byte(template))
	}
	f.Fuzz(func(t *testing.T, tokenizer, template []byte) {
		tok, err := Load(map[string][]byte{"tokenizer.json": tokenizer, "chat_template.jinja": template})
		if err != nil {
			require.ErrorIs(t, err, ErrFiles)
			return
		}
		tok.Decode(tok.Encode("some text <|im_end|> ab 12\n"))
		if _, _, err := tok.Template([]Message{{Role: "user", Content: "some text"}}, true); err != nil && len(template) > 0 {
			require.ErrorIs(t, err, ErrTemplate)
		}
	})
}

// No template ends the process or takes for ever.
func FuzzTemplate(f *testing.F) {
	for _, source := range []string{
		`{{ "a" * 100 }}`, `{% set ns = namespace(x=1) %}{% set ns.x = [ns] %}{{ ns }}`, `{{ "a,b".split(",")[0].strip() ~ ["x"]|join("y") }}`,
		`{% for i in range(16) if i > 3 %}{{ i|string|replace("", "aaa") }}{% endfor %}`, `{% set x %}{{ messages }}{% endset %}{{ x[::-1] + x }}`,
		`{{ messages[1:]|selectattr("role", "equalto", "user")|list|tojson(indent=2) }}`,
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		parsed, err := newTemplate(source, nil)
		if err != nil {
			return
		}
		start := time.Now()
		if _, err := parsed.render([]Message{{Role: "user", Content: "hello"}}, true); err != nil {
			require.ErrorIs(t, err, ErrTemplate)
		}
		require.Less(t, time.Since(start), time.Minute)
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := load(b, "testdata/spaces")
	text := strings.Repeat("def return self value (x) -> 3456:\n    return  y\n", 40)
	n := len(tok.Encode(text))
	b.ReportAllocs()
	for b.Loop() {
		tok.Encode(text)
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tokens/s")
}
