package program

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/policy"
)

func fromGGUFCommand() *cobra.Command {
	var dtype string
	cmd := &cobra.Command{
		Use:   "from-gguf FILE... DIR",
		Short: "write a model folder from a GGUF file",
		Long: `Writes a Hugging Face folder from a GGUF file (version 2 or 3) of llama, qwen2 or qwen3:
config.json, the tokenizer's files, and the weights with the numbers that llama.cpp
reads. Kinds of numbers: F32, F16, BF16, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K. Tokenizers
(tokenizer.ggml.pre): smollm, qwen2, llama-bpe. Everything else in the file that
changes numbers or tokens is refused by its name. Several FILEs are one file that was
cut into parts, in their order. DIR is new or empty; it is filled when all is written.
The same file gives the same bytes.`,
		Example: `  reprise policy from-gguf SmolLM2-135M-Instruct.Q4_1.gguf smol
  reprise policy from-gguf model.gguf.0 model.gguf.1 model --dtype bfloat16`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("FILE or DIR is missing: %s (%s --help has examples)", cmd.UseLine(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if dtype != "float32" && dtype != "bfloat16" {
				return fmt.Errorf("--dtype %s: must be float32 or bfloat16", dtype)
			}
			files, dir := args[:len(args)-1], args[len(args)-1]
			c, size, err := policy.FromGGUF(cmd.Context(), files, dir, dtype, everySeconds(cmd.ErrOrStderr(), 2*time.Second))
			if err != nil {
				return fmt.Errorf("model folder %s from GGUF: %w", dir, err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d parameters, %s of %s\n", dir, c.Parameters(), human.Bytes(size), dtype)
			return err
		},
	}
	cmd.Flags().StringVar(&dtype, "dtype", "float32", "of the weights: float32, exact, or bfloat16, rounded to the nearest even")
	return cmd
}

// everySeconds prints how many tensors are written, at most once in that time.
func everySeconds(out io.Writer, wait time.Duration) func(i, of int) {
	last := time.Now()
	return func(i, of int) {
		if now := time.Now(); now.Sub(last) >= wait {
			last = now
			fmt.Fprintf(out, "%d of %d tensors\n", i, of)
		}
	}
}
