package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// maxTokens bounds the tokens of a command's rows, including new ones.
const maxTokens = 1 << 22

// Model names the folders of what a command computes with.
type Model struct {
	Folder  string // a Hugging Face model folder
	Adapter string // a PEFT folder of adapters over it; empty: none
}

// opened are a model's folders while they are read.
type opened struct {
	weights model.Source
	folders []*model.Folder
}

// close closes the folders; the weights cannot be read any more.
func (o *opened) close() {
	for _, f := range o.folders {
		f.Close()
	}
}

// open opens the folders, which the caller closes.
func (m Model) open() (*opened, error) {
	base, err := model.OpenFolder(m.Folder)
	if err != nil {
		return nil, err
	}
	o := &opened{weights: base.First(), folders: []*model.Folder{base}}
	if m.Adapter == "" {
		return o, nil
	}
	adapter, err := model.OpenAdapter(m.Adapter, base.Config)
	if err != nil {
		o.close()
		return nil, err
	}
	o.weights, o.folders = adapter.First().On(base.First()), append(o.folders, adapter)
	return o, nil
}

// readRows reads {"ids":[[…]…]} and opens a model, which the caller closes. It checks that
// the model can process each row followed by fresh more tokens.
func readRows(in io.Reader, m Model, fresh int) ([][]int32, *opened, error) {
	var ids [][]int32
	if err := readInput(in, IDsExample, inputField{name: "ids", read: readArray(&ids, readIDs)}); err != nil {
		return nil, nil, err
	}
	o, err := m.open()
	if err != nil {
		return nil, nil, err
	}
	if err := checkRows(ids, fresh, o.weights.Config); err != nil {
		o.close()
		return nil, nil, fmt.Errorf("standard input: %w", err)
	}
	return ids, o, nil
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

// floats is a row of float32 that is encoded as the shortest decimals that parse to the
// same float32. Values that are not finite are encoded as by canon.Float.
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

// Scores are the log-probs and the entropies of rows.
type Scores struct {
	LogProbs []floats `json:"logprobs"`
	Entropy  []floats `json:"entropy"`
}

// LogProbs reads rows of equal length and scores them.
func LogProbs(ctx context.Context, in io.Reader, m Model, options model.DeviceOptions) (Scores, error) {
	ids, o, err := readRows(in, m, 0)
	if err != nil {
		return Scores{}, err
	}
	defer o.close()
	for i, row := range ids {
		if len(row) != len(ids[0]) {
			return Scores{}, fmt.Errorf("standard input: ids[%d]: %d tokens, ids[0] has %d: rows must be of one length", i, len(row), len(ids[0]))
		}
	}
	d, err := model.OpenDevice(options)
	if err != nil {
		return Scores{}, err
	}
	defer d.Close()
	logProbs, entropy, err := model.LogProbs(ctx, d, o.weights, ids)
	if err != nil {
		return Scores{}, err
	}
	return Scores{floatRows(logProbs), floatRows(entropy)}, nil
}

// Sampling is how rows are continued: at Temperature 0 with the likeliest token, above it
// with draws from the stream of Seed.
type Sampling struct {
	Temperature  float32
	MaxNewTokens int // per row
	IgnoreEOS    bool
	Seed         uint64
}

func (s Sampling) check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(float64(s.Temperature), 0):
		return fmt.Errorf("--temperature is %v: want 0 or more", s.Temperature)
	case s.MaxNewTokens < 1 || s.MaxNewTokens > maxNewTokens:
		return fmt.Errorf("--max-new-tokens is %d: want 1 to %d", s.MaxNewTokens, maxNewTokens)
	}
	return nil
}

// Generate reads prompts and returns the new tokens of each.
func Generate(ctx context.Context, in io.Reader, m Model, s Sampling, options model.DeviceOptions) (IDs, error) {
	if err := s.check(); err != nil {
		return IDs{}, err
	}
	prompts, o, err := readRows(in, m, s.MaxNewTokens)
	if err != nil {
		return IDs{}, err
	}
	defer o.close()
	t, err := tokenizer.LoadFolder(m.Folder)
	if err != nil {
		return IDs{}, err
	}
	legal, err := t.Legal(o.weights.Config.VocabSize)
	if err != nil {
		return IDs{}, fmt.Errorf("model folder %s: %w", m.Folder, err)
	}
	stop := t.EOS()
	if len(stop) > model.MaxStops {
		return IDs{}, fmt.Errorf("model folder %s has %d end-of-sequence ids, at most %d are looked for", m.Folder, len(stop), model.MaxStops)
	}
	d, err := model.OpenDevice(options)
	if err != nil {
		return IDs{}, err
	}
	defer d.Close()
	ids, err := model.GreedyOrSample(ctx, d, o.weights, prompts, model.GenerateOptions{
		MaxNewTokens: s.MaxNewTokens, Temperature: s.Temperature, Stop: stop, IgnoreStop: s.IgnoreEOS, Legal: legal,
		At: draw.Address{Seed: s.Seed, Purpose: draw.Sample},
	})
	return IDs{IDs: append([][]int32{}, ids...)}, err
}
