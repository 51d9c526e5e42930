package program

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/hf/families"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/policy"
	"github.com/reprise-rl/reprise/workers/stack"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "a model folder's tokenizer, log-probs and generation, for scripts; folders from GGUF, and random ones; trials",
		Long: `Commands for scripts and comparisons. Each but random, from-gguf and try reads one JSON object from standard
input and writes one to standard output. Problems go to standard error, with
status 1. --model names a Hugging Face folder: config.json, tokenizer.json,
model.safetensors (or its shards), …
--adapter names a folder of LoRA adapters over that model: adapter_config.json and
adapter_model.safetensors.`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(encodeCommand(), decodeCommand(), templateCommand(), logProbsCommand(), generateCommand(),
		randomCommand(), fromGGUFCommand(), tryCommand())
	return cmd
}

// addAdapterFlag adds the flag of the commands that compute.
func addAdapterFlag(cmd *cobra.Command, adapter *string) {
	cmd.Flags().StringVar(adapter, "adapter", "", "a folder of LoRA adapters over the model, as PEFT writes it")
}

// policySubcommand adds what the policy commands share: run answers with what is printed.
func policySubcommand(cmd *cobra.Command, run func(cmd *cobra.Command, folder string) (any, error)) *cobra.Command {
	var folder string
	cmd.Args = command.None
	cmd.Flags().StringVar(&folder, "model", "", "the model's folder")
	cobra.CheckErr(cmd.MarkFlagRequired("model"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		out, err := run(cmd, folder)
		if err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), out)
	}
	return cmd
}

func encodeCommand() *cobra.Command {
	return policySubcommand(&cobra.Command{
		Use:   "encode --model DIR",
		Short: "texts to token ids",
		Long: `Reads {"texts":["…"]} and writes {"ids":[[…]]}, a list for each text, as
transformers' tokenizer(text) gives it: special tokens in the text are recognised.`,
		Example: `  echo '` + policy.TextsExample + `' | reprise policy encode --model qwen`,
	}, func(cmd *cobra.Command, folder string) (any, error) {
		out, err := policy.Encode(cmd.InOrStdin(), folder)
		for _, w := range out.Warnings {
			cmd.PrintErrln("warning: " + w)
		}
		return out, err
	})
}

func decodeCommand() *cobra.Command {
	return policySubcommand(&cobra.Command{
		Use:   "decode --model DIR",
		Short: "token ids to texts",
		Long: `Reads {"ids":[[…]]} and writes {"texts":["…"]}, a text for each list, special
tokens included. Bytes that are not UTF-8 become U+FFFD.`,
		Example: `  echo '` + policy.IDsExample + `' | reprise policy decode --model qwen`,
	}, func(cmd *cobra.Command, folder string) (any, error) {
		return policy.Decode(cmd.InOrStdin(), folder)
	})
}

func templateCommand() *cobra.Command {
	return policySubcommand(&cobra.Command{
		Use:   "template --model DIR",
		Short: "a conversation to text and token ids, by the chat template",
		Long: `Reads {"messages":[{"role":"…","content":"…"}],"add_generation_prompt":true} and
writes {"text":"…","ids":[…]}, as transformers' apply_chat_template gives them.
Without add_generation_prompt nothing is added. "enable_thinking" (true or false) and
"chat_template_kwargs" (an object) are variables for the template. There is no clock: a
template that asks for the date takes its own default, or what it is given.`,
		Example: `  echo '` + policy.MessagesExample + `' | reprise policy template --model qwen
  echo '{"messages":[{"role":"user","content":"Hello"}],"enable_thinking":false}' | reprise policy template --model qwen3`,
	}, func(cmd *cobra.Command, folder string) (any, error) {
		return policy.Template(cmd.InOrStdin(), folder)
	})
}

func logProbsCommand() *cobra.Command {
	var options model.DeviceOptions
	var adapter string
	cmd := policySubcommand(&cobra.Command{
		Use:   "logprobs --model DIR [--adapter DIR]",
		Short: "log-probs and entropies of token ids",
		Long: `Reads {"ids":[[…]…]}, rows of one length L, and writes
{"logprobs":[[…]…],"entropy":[[…]…]}. A row has L-1 logprobs: at t the log p of
token t+1 given the tokens up to t, over the whole vocabulary. A row has L entropies:
at t the entropy, in nats, of the distribution after token t. Numbers that are not
finite are written "NaN", "Infinity" or "-Infinity".`,
		Example: `  echo '` + policy.IDsExample + `' | reprise policy logprobs --model qwen
  echo '` + policy.IDsExample + `' | reprise policy logprobs --model qwen --adapter lora`,
	}, func(cmd *cobra.Command, folder string) (any, error) {
		return policy.LogProbs(cmd.Context(), cmd.InOrStdin(), policy.Model{Folder: folder, Adapter: adapter}, options)
	})
	addAdapterFlag(cmd, &adapter)
	stack.AddDeviceFlags(cmd.Flags(), &options, "")
	return cmd
}

func generateCommand() *cobra.Command {
	var options model.DeviceOptions
	var s policy.Sampling
	var adapter string
	cmd := policySubcommand(&cobra.Command{
		Use:   "generate --model DIR [--adapter DIR]",
		Short: "continue token ids",
		Long: `Reads {"ids":[[…]…]}, prompts of any lengths, and writes {"ids":[[new tokens]…]}.
A row ends with an end-of-sequence token (which is part of it), or after
--max-new-tokens. Only ids that the tokenizer has are sampled. At temperature 0
the likeliest token is taken; of equally likely ones, the lowest id. Above 0, row i
draws from the stream of --seed and i.`,
		Example: `  echo '` + policy.IDsExample + `' | reprise policy generate --model qwen --max-new-tokens 16
  echo '` + policy.IDsExample + `' | reprise policy generate --model qwen --temperature 1 --seed 7`,
	}, func(cmd *cobra.Command, folder string) (any, error) {
		return policy.Generate(cmd.Context(), cmd.InOrStdin(), policy.Model{Folder: folder, Adapter: adapter}, s, options)
	})
	addAdapterFlag(cmd, &adapter)
	cmd.Flags().Float32Var(&s.Temperature, "temperature", 0, "0 takes the likeliest token")
	cmd.Flags().IntVar(&s.MaxNewTokens, "max-new-tokens", 64, "the largest number of new tokens in a row")
	cmd.Flags().BoolVar(&s.IgnoreEOS, "ignore-eos", false, "continue after an end-of-sequence token")
	cmd.Flags().Uint64Var(&s.Seed, "seed", 0, "seed of the draws")
	stack.AddDeviceFlags(cmd.Flags(), &options, "")
	return cmd
}

func randomCommand() *cobra.Command {
	var shape string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "random --shape NAME DIR",
		Short: "write a model folder with random weights of a known shape",
		Long: `Writes a Hugging Face folder of a known model's shape with random weights in float32,
to try a size without its weights. The tokenizer is the starter's, with the shape's
vocabulary: ids without a token are never sampled. Weights are drawn one tensor at a
time, so a folder of any size needs little memory. Shapes: ` + strings.Join(families.Names(), ", ") + ".",
		Example: `  reprise policy random --shape qwen2.5-0.5b .reprise/size-0.5b
  reprise policy random --shape qwen3-0.6b --seed 7 model`,
		Args: one("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := policy.Random(cmd.Context(), args[0], shape, seed, func(name string, size int64) {
				fmt.Fprintf(cmd.ErrOrStderr(), "writing %s, %s\n", name, human.Bytes(size))
			})
			if err != nil {
				return fmt.Errorf("random folder %s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&shape, "shape", "", "the shape's name")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the weights")
	cobra.CheckErr(cmd.MarkFlagRequired("shape"))
	return cmd
}
