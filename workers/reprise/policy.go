package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/model/tokenizer"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "a model folder's tokenizer, log-probs and generation, for scripts",
		Long: `Commands for scripts and comparisons. Each reads one JSON object from standard
input and writes one to standard output; what is wrong is said on standard error,
with status 1. --model names a Hugging Face folder: config.json, tokenizer.json,
model.safetensors (or its shards), …`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(encodeCommand(), decodeCommand(), templateCommand(), logProbsCommand(), generateCommand())
	return cmd
}

// policySubcommand adds what all policy commands have in common.
func policySubcommand(cmd *cobra.Command, folder *string) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(folder, "model", "", "the model's folder")
	if err := cmd.MarkFlagRequired("model"); err != nil {
		panic(err) // the flag is there: see above
	}
	return cmd
}

const (
	textsExample    = `{"texts":["Hello"]}`
	idsExample      = `{"ids":[[1,2,3]]}`
	messagesExample = `{"messages":[{"role":"user","content":"Hello"}],"add_generation_prompt":true}`
)

func encodeCommand() *cobra.Command {
	var folder string
	return policySubcommand(&cobra.Command{
		Use:   "encode --model DIR",
		Short: "texts to token ids",
		Long: `Reads {"texts":["…"]} and writes {"ids":[[…]]}, a list for each text, as
transformers' tokenizer(text) gives it: special tokens in the text are recognised.`,
		Example: `  echo '` + textsExample + `' | reprise policy encode --model qwen`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var texts []string
			if err := readInput(cmd.InOrStdin(), textsExample, inputField{name: "texts", read: readArray(&texts, readText)}); err != nil {
				return err
			}
			t, err := loadTokenizer(folder)
			if err != nil {
				return err
			}
			ids := make([][]int32, len(texts))
			for i, text := range texts {
				ids[i] = append([]int32{}, t.Encode(text)...)
			}
			return printJSON(cmd.OutOrStdout(), idsOutput{ids})
		},
	}, &folder)
}

// idsOutput is {"ids":[[…]]}.
type idsOutput struct {
	IDs [][]int32 `json:"ids"`
}

func decodeCommand() *cobra.Command {
	var folder string
	return policySubcommand(&cobra.Command{
		Use:   "decode --model DIR",
		Short: "token ids to texts",
		Long: `Reads {"ids":[[…]]} and writes {"texts":["…"]}, a text for each list, special
tokens included. Bytes that are no UTF-8 become U+FFFD.`,
		Example: `  echo '` + idsExample + `' | reprise policy decode --model qwen`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ids [][]int32
			if err := readInput(cmd.InOrStdin(), idsExample, inputField{name: "ids", read: readArray(&ids, readIDs)}); err != nil {
				return err
			}
			t, err := loadTokenizer(folder)
			if err != nil {
				return err
			}
			legal, err := t.Legal(t.VocabSize())
			if err != nil {
				return err
			}
			texts := make([]string, len(ids))
			for i, row := range ids {
				for j, id := range row {
					if int(id) >= len(legal) || !legal[id] {
						return fmt.Errorf("standard input: ids[%d][%d]: %d is no token of this tokenizer", i, j, id)
					}
				}
				texts[i] = t.Decode(row)
			}
			return printJSON(cmd.OutOrStdout(), struct {
				Texts []string `json:"texts"`
			}{texts})
		},
	}, &folder)
}

func templateCommand() *cobra.Command {
	var folder string
	return policySubcommand(&cobra.Command{
		Use:   "template --model DIR",
		Short: "a conversation to text and token ids, by the chat template",
		Long: `Reads {"messages":[{"role":"…","content":"…"}],"add_generation_prompt":true} and
writes {"text":"…","ids":[…]}, as transformers' apply_chat_template gives them.
Without add_generation_prompt nothing is added.`,
		Example: `  echo '` + messagesExample + `' | reprise policy template --model qwen`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var messages []tokenizer.Message
			var prompt bool
			err := readInput(cmd.InOrStdin(), messagesExample,
				inputField{name: "messages", read: readArray(&messages, readMessage)},
				inputField{name: "add_generation_prompt", optional: true, read: readBool(&prompt)})
			if err != nil {
				return err
			}
			t, err := loadTokenizer(folder)
			if err != nil {
				return err
			}
			text, ids, err := t.Template(messages, prompt)
			if err != nil {
				return fmt.Errorf("apply the chat template of %s: %w", folder, err)
			}
			return printJSON(cmd.OutOrStdout(), struct {
				Text string  `json:"text"`
				IDs  []int32 `json:"ids"`
			}{text, append([]int32{}, ids...)})
		},
	}, &folder)
}

// maxSmallFile bounds each file of a folder that is read whole.
const maxSmallFile = 64 << 20

// readSmallFiles reads the files of a model folder that are there, but the
// weights. Nothing outside the folder is opened.
func readSmallFiles(folder string) (map[string][]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open model folder: %w", err)
	}
	defer root.Close()
	files := make(map[string][]byte)
	for _, name := range tokenizer.FileNames {
		b, err := readSmallFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read model folder %s: %w", folder, err)
		}
		files[name] = b
	}
	return files, nil
}

func readSmallFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSmallFile+1))
	if err == nil && len(b) > maxSmallFile {
		err = fmt.Errorf("%s: more than %d bytes", name, maxSmallFile)
	}
	return b, err
}

func loadTokenizer(folder string) (*tokenizer.Tokenizer, error) {
	files, err := readSmallFiles(folder)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Load(files)
	if err != nil {
		return nil, fmt.Errorf("load the tokenizer of %s: %w", folder, err)
	}
	return t, nil
}
