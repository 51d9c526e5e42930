package environments

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

//go:embed python.py
var pythonScript string

// pythonPatience bounds a round of Python.
const pythonPatience = 30 * time.Second

// Python is the Python that was compared with.
type Python struct {
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	// Packages holds the versions of gym-sokoban and gymnasium, if installed.
	Packages map[string]string `json:"packages,omitempty"`
	// Missing is why some or all of it was not measured; "" if all was.
	Missing string `json:"missing,omitempty"`
}

// pythonRates is what the script prints.
type pythonRates struct {
	Version    string             `json:"version"`
	Packages   map[string]string  `json:"packages"`
	Generation map[string]float64 `json:"generation"`
	Steps      map[string]float64 `json:"steps"`
}

// rate is a figure by section and name; 0 if there is none.
func (p pythonRates) rate(section, name string) float64 {
	switch section {
	case "generation":
		return p.Generation[name]
	case "steps":
		return p.Steps[name]
	}
	return 0
}

// readPython parses the last line that the script printed. Importing a package may print
// lines before it.
func readPython(out []byte) (pythonRates, error) {
	var p pythonRates
	out = bytes.TrimSpace(out)
	last := out[bytes.LastIndexByte(out, '\n')+1:]
	if err := json.Unmarshal(last, &p); err != nil {
		return p, fmt.Errorf("read Python's figures: %w", err)
	}
	for _, section := range []map[string]float64{p.Generation, p.Steps} {
		for name, rate := range section {
			if rate <= 0 || math.IsInf(rate, 0) {
				return p, fmt.Errorf("read Python's figures: %s is %v a second", name, rate)
			}
		}
	}
	return p, nil
}

// PythonPackages lists the packages to compare with.
var PythonPackages = []string{"gym-sokoban", "gymnasium"}

// missing names the packages that are not installed.
func (p pythonRates) missing() string {
	var lacks []string
	for _, name := range PythonPackages {
		if p.Packages[name] == "" {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) == 0 {
		return ""
	}
	return "it has no " + strings.Join(lacks, " and no ")
}

// runPython measures one round.
func runPython(ctx context.Context, path string, least time.Duration) (pythonRates, error) {
	ctx, cancel := context.WithTimeout(ctx, pythonPatience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-c", pythonScript, strconv.FormatFloat(least.Seconds(), 'f', 3, 64))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return pythonRates{}, fmt.Errorf("run %s: %w: %s", path, err, lines[len(lines)-1])
	}
	return readPython(stdout.Bytes())
}

// pythonSide is Python's figures of each round.
type pythonSide struct {
	Python
	rounds []pythonRates
}

// findPython finds the Python that Options.Python names.
func findPython(name string) *pythonSide {
	if name == "" {
		return &pythonSide{Python: Python{Missing: "not asked for"}}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return &pythonSide{Python: Python{Missing: "there is no " + name}}
	}
	return &pythonSide{Python: Python{Path: path}}
}

// round measures one round. If Python fails, the reason is recorded and it is not run
// again. The only error is the caller's context.
func (p *pythonSide) round(ctx context.Context, least time.Duration) error {
	if p.Path == "" || p.Missing != "" && len(p.rounds) == 0 {
		return nil
	}
	got, err := runPython(ctx, p.Path, least)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s took longer than %s", p.Path, pythonPatience)
	}
	if err != nil {
		p.Missing, p.rounds = err.Error(), nil
		return nil
	}
	p.Version, p.Packages, p.Missing = got.Version, got.Packages, got.missing()
	if len(got.Packages) > 0 {
		p.rounds = append(p.rounds, got)
	}
	return nil
}

// rates is the figures of one kind in each round.
func (p *pythonSide) rates(section, name string) []float64 {
	var out []float64
	for _, r := range p.rounds {
		if rate := r.rate(section, name); rate > 0 {
			out = append(out, rate)
		}
	}
	return out
}
