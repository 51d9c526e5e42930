package speed

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
)

//go:embed torch.py
var torchScript string

// torchPatience bounds the start of Python and each work of it.
const torchPatience = 3 * time.Minute

// avx2 holds torch to the instruction set of the code that XLA generates on a CPU.
var avx2 = []string{"ATEN_CPU_CAPABILITY=avx2", "ONEDNN_MAX_CPU_ISA=AVX2", "MKL_ENABLE_INSTRUCTIONS=AVX2"}

// safePath keeps Python from importing files of the working directory, such as torch.py here.
const safePath = "PYTHONSAFEPATH=1"

// torchWork is work.json.
type torchWork struct {
	Threads   int            `json:"threads"`
	Batches   []torchBatch   `json:"batches"`
	Prompts   [][]int32      `json:"prompts"`
	NewTokens int            `json:"new_tokens"`
	Block     [][]int32      `json:"block"` // prompts of rows of unequal lengths
	Lengths   []int          `json:"lengths"`
	Optimizer torchOptimizer `json:"optimizer"`
}

// torchBatch is a micro-batch. Place t of Mask, Old and Advantages belongs to the token that
// place t of IDs predicts.
type torchBatch struct {
	IDs        [][]int32   `json:"ids"`
	Mask       [][]bool    `json:"mask"`
	Old        [][]float32 `json:"old"`
	Advantages [][]float32 `json:"advantages"`
}

type torchOptimizer struct {
	Rate     float32 `json:"rate"`
	Beta1    float32 `json:"beta1"`
	Beta2    float32 `json:"beta2"`
	Epsilon  float32 `json:"epsilon"`
	MaxNorm  float32 `json:"max_norm"`
	ClipLow  float32 `json:"clip_low"`
	ClipHigh float32 `json:"clip_high"`
}

// writeTorch writes the policy and the work of a subject into a folder.
func writeTorch(dir string, s *subject) error {
	files, err := model.DrawnFiles(s.Config, weights)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(dir, f.Name), f.Open()); err != nil {
			return err
		}
	}
	w := torchWork{
		Threads: runtime.NumCPU(), Prompts: s.generate.Prompts, NewTokens: s.Shape.NewTokens,
		Block: s.block.Prompts, Lengths: s.lengths,
		Optimizer: torchOptimizer{
			Rate: s.settings.LearningRate, Beta1: s.settings.Beta1, Beta2: s.settings.Beta2, Epsilon: s.settings.AdamEpsilon,
			MaxNorm: s.settings.MaxGradNorm, ClipLow: s.settings.ClipLow, ClipHigh: s.settings.ClipHigh,
		},
	}
	for _, b := range s.batches {
		w.Batches = append(w.Batches, torchBatch{IDs: b.IDs, Mask: ahead(b.Mask), Old: ahead(b.Columns[batch.OldLogProbs]),
			Advantages: ahead(b.Columns[batch.Advantages])})
	}
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "work.json"), bytes.NewReader(body))
}

// ahead moves the value of token t+1 to place t of each row. The last place is zero.
func ahead[T any](rows [][]T) [][]T {
	out := make([][]T, len(rows))
	for i, row := range rows {
		out[i] = make([]T, len(row))
		copy(out[i], row[1:])
	}
	return out
}

func writeFile(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// torch is a Python that works on request.
type torch struct {
	hello   torchHello
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	in      io.WriteCloser
	answers *json.Decoder
	stderr  bytes.Buffer
	trained bool
}

// torchHello is the first answer.
type torchHello struct {
	Python       string `json:"python"`
	Torch        string `json:"torch"`
	Transformers string `json:"transformers"`
	// Capability is the instruction set that torch uses.
	Capability string `json:"capability"`
}

// torchAnswer is the answer to a work.
type torchAnswer struct {
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor"`
	// Result is the loss of a training step.
	Result float64 `json:"result"`
}

// startTorch starts a Python with further environment variables on the folder that writeTorch
// has written.
func startTorch(ctx context.Context, path, dir string, environment []string) (*torch, error) {
	ctx, cancel := context.WithCancel(ctx)
	t := &torch{cmd: exec.CommandContext(ctx, path, "-c", torchScript, dir), cancel: cancel}
	t.cmd.Env = append(append(os.Environ(), safePath), environment...)
	t.cmd.Stderr = &t.stderr
	t.cmd.WaitDelay = time.Second
	in, err := t.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	t.in, t.answers = in, json.NewDecoder(out)
	if err := t.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	if err := t.answer(&t.hello); err != nil {
		return nil, t.failed(path, err)
	}
	return t, nil
}

// work has a kind of work done once.
func (t *torch) work(kind string) (a torchAnswer, err error) {
	_, err = io.WriteString(t.in, kind+"\n")
	if err == nil {
		err = t.answer(&a)
	}
	if err == nil && !(a.Seconds > 0 && a.Processor > 0 && !math.IsInf(a.Result, 0)) {
		err = fmt.Errorf("%v seconds, %v of the processor, result %v", a.Seconds, a.Processor, a.Result)
	}
	if err != nil {
		return a, t.failed(kind, err)
	}
	return a, nil
}

func (t *torch) answer(into any) error {
	patience := time.AfterFunc(torchPatience, t.cancel)
	defer patience.Stop()
	return t.answers.Decode(into)
}

// failed ends Python and says why it failed.
func (t *torch) failed(what string, err error) error {
	t.cancel()
	ended := t.cmd.Wait()
	lines := strings.Split(strings.TrimSpace(t.stderr.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Errorf("%s: %s", what, last)
	}
	return fmt.Errorf("%s: %w (%v)", what, err, ended)
}

// end ends Python.
func (t *torch) end() {
	t.in.Close()
	t.cancel()
	_ = t.cmd.Wait() // it is killed
}
