package main

import (
	"fmt"

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
			t, err := tokenizer.LoadFolder(folder)
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
			t, err := tokenizer.LoadFolder(folder)
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
			t, err := tokenizer.LoadFolder(folder)
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
