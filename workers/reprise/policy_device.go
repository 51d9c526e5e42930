package main

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// maxTokens bounds what one command computes: the tokens of its rows, new ones
// included.
const maxTokens = 1 << 22

// deviceFlags are the flags of what opens a device.
func deviceFlags(cmd *cobra.Command, options *model.DeviceOptions) {
	cmd.Flags().StringVar(&options.Plugin, "plugin", "", "PJRT plugin (.so) [REPRISE_PJRT_PLUGIN]")
	cmd.Flags().StringVar(&options.XLAFlags, "xla-flags", "", "XLA flags besides ours")
}

// readRows reads {"ids":[[…]…]} and a model folder that can take the rows, each
// with fresh more tokens after it.
func readRows(cmd *cobra.Command, path string, fresh int) ([][]int32, *model.Folder, error) {
	var ids [][]int32
	if err := readInput(cmd.InOrStdin(), idsExample, inputField{name: "ids", read: readArray(&ids, readIDs)}); err != nil {
		return nil, nil, err
	}
	folder, err := model.ReadFolder(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkRows(ids, fresh, folder.Config); err != nil {
		return nil, nil, fmt.Errorf("standard input: %w", err)
	}
	return ids, folder, nil
}

func checkRows(ids [][]int32, fresh int, c model.Config) error {
	tokens := 0
	for i, row := range ids {
		if len(row) == 0 {
			return fmt.Errorf("ids[%d]: no token, want at least 1", i)
		}
		if length := len(row) + fresh; length > c.MaxPositions {
			return fmt.Errorf("ids[%d]: %d tokens, the model's max_position_embeddings is %d", i, length, c.MaxPositions)
		}
		for j, id := range row {
			if int(id) >= c.VocabSize {
				return fmt.Errorf("ids[%d][%d]: %d, the model's vocabulary has %d ids", i, j, id, c.VocabSize)
			}
		}
		if tokens += len(row) + fresh; tokens > maxTokens {
			return fmt.Errorf("more than %d tokens", maxTokens)
		}
	}
	return nil
}

func logProbsCommand() *cobra.Command {
	var folder string
	var options model.DeviceOptions
	cmd := policySubcommand(&cobra.Command{
		Use:   "logprobs --model DIR",
		Short: "log-probs and entropies of token ids",
		Long: `Reads {"ids":[[…]…]}, rows of one length L, and writes
{"logprobs":[[…]…],"entropy":[[…]…]}. logprobs are L-1 a row: at t the log p of
token t+1 given the tokens up to t, over the whole vocabulary. entropy is L a row:
at t the entropy, in nats, of the distribution after token t. What is not finite
is written "NaN", "Infinity" or "-Infinity".`,
		Example: `  echo '` + idsExample + `' | reprise policy logprobs --model qwen`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ids, f, err := readRows(cmd, folder, 0)
			if err != nil {
				return err
			}
			for i, row := range ids {
				if len(row) != len(ids[0]) {
					return fmt.Errorf("standard input: ids[%d]: %d tokens, ids[0] has %d: rows must be of one length", i, len(row), len(ids[0]))
				}
			}
			d, err := model.OpenDevice(options)
			if err != nil {
				return err
			}
			defer d.Close()
			logProbs, entropy, err := model.LogProbs(cmd.Context(), d, f, ids)
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), struct {
				LogProbs []floats `json:"logprobs"`
				Entropy  []floats `json:"entropy"`
			}{floatRows(logProbs), floatRows(entropy)})
		},
	}, &folder)
	deviceFlags(cmd, &options)
	return cmd
}

// floats is a row of float32 in JSON: the shortest decimals that read back as the
// same float32; what is not finite as canon.Float has it.
type floats []float32

func floatRows(rows [][]float32) []floats {
	out := make([]floats, len(rows))
	for i, row := range rows {
		out[i] = row
	}
	return out
}

// MarshalJSON implements json.Marshaler.
func (f floats) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, v := range f {
		if i > 0 {
			b = append(b, ',')
		}
		var number []byte
		var err error
		if wide := float64(v); math.IsNaN(wide) || math.IsInf(wide, 0) {
			number, err = canon.Float(wide).MarshalJSON()
		} else {
			number, err = json.Marshal(v)
		}
		if err != nil {
			return nil, err
		}
		b = append(b, number...)
	}
	return append(b, ']'), nil
}

// maxNewTokens bounds --max-new-tokens.
const maxNewTokens = 1 << 16

func generateCommand() *cobra.Command {
	var folder string
	var options model.DeviceOptions
	var temperature float32
	var fresh int
	var ignoreEOS bool
	var seed uint64
	cmd := policySubcommand(&cobra.Command{
		Use:   "generate --model DIR",
		Short: "continue token ids",
		Long: `Reads {"ids":[[…]…]}, prompts of any lengths, and writes {"ids":[[new tokens]…]}.
A row ends with an end-of-sequence token (which is part of it), or after
--max-new-tokens. Only ids that the tokenizer has are sampled. At temperature 0
the likeliest token is taken, the lowest id of equals; above it, row i draws from
the stream of --seed and i.`,
		Example: `  echo '` + idsExample + `' | reprise policy generate --model qwen --max-new-tokens 16
  echo '` + idsExample + `' | reprise policy generate --model qwen --temperature 1 --seed 7`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !(temperature >= 0) || math.IsInf(float64(temperature), 0):
				return fmt.Errorf("--temperature is %v: want 0 or more", temperature)
			case fresh < 1 || fresh > maxNewTokens:
				return fmt.Errorf("--max-new-tokens is %d: want 1 to %d", fresh, maxNewTokens)
			}
			prompts, f, err := readRows(cmd, folder, fresh)
			if err != nil {
				return err
			}
			t, err := tokenizer.LoadFolder(folder)
			if err != nil {
				return err
			}
			legal, err := t.Legal(f.Config.VocabSize)
			if err != nil {
				return fmt.Errorf("model folder %s: %w", folder, err)
			}
			stop := t.EOS()
			if len(stop) > model.MaxStops {
				return fmt.Errorf("model folder %s has %d end-of-sequence ids, at most %d are looked for", folder, len(stop), model.MaxStops)
			}
			d, err := model.OpenDevice(options)
			if err != nil {
				return err
			}
			defer d.Close()
			ids, err := model.GreedyOrSample(cmd.Context(), d, f, prompts, model.GenerateOptions{
				MaxNewTokens: fresh, Temperature: temperature, Stop: stop, IgnoreStop: ignoreEOS, Legal: legal,
				At: draw.Address{Seed: seed, Purpose: draw.Sample},
			})
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), idsOutput{append([][]int32{}, ids...)})
		},
	}, &folder)
	cmd.Flags().Float32Var(&temperature, "temperature", 0, "0 takes the likeliest token")
	cmd.Flags().IntVar(&fresh, "max-new-tokens", 64, "the most new tokens of a row")
	cmd.Flags().BoolVar(&ignoreEOS, "ignore-eos", false, "go on after an end-of-sequence token")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "seed of the draws")
	deviceFlags(cmd, &options)
	return cmd
}
