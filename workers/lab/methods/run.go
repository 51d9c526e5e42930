package methods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/lab/study"
)

// Options select what is run and where its records are.
type Options struct {
	// Worker configures the device.
	Worker workers.Options
	// Seeds is how many runs each method has, with the seeds 1, 2, ….
	Seeds int
	// Tokens is after how many sampled tokens a run ends.
	Tokens int
	// Out is the folder of the records, the table and the plot.
	Out string
	// Only restricts the methods to these names or patterns; empty is all.
	Only []string
	// small are fields of every spec that tests replace.
	small map[string]any
}

// spec is the JSON of a method's run.
func (o Options) spec(m Method, seed uint64) ([]byte, error) {
	text, err := m.Spec(seed, o.Tokens)
	if err != nil || o.small == nil {
		return text, err
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("method %s: %w", m.Name, err)
	}
	presets.Replace(doc, o.small)
	return json.Marshal(doc)
}

// Names lists the names of all methods.
func Names() []string {
	var names []string
	for _, m := range Methods {
		names = append(names, m.Name)
	}
	return names
}

// wanted is a run of the study.
type wanted struct {
	method Method
	seed   uint64
	text   []byte
	spec   string // its digest
}

// chosen lists the runs, seed by seed, so that an interrupted study has nearly as many seeds of each method.
func (o Options) chosen() ([]wanted, error) {
	if o.Seeds < 1 || o.Tokens < 1 {
		return nil, fmt.Errorf("study: %d seeds and %d tokens: at least 1 of both", o.Seeds, o.Tokens)
	}
	var runs []wanted
	for seed := 1; seed <= o.Seeds; seed++ {
		for _, m := range Methods {
			asked := len(o.Only) == 0
			for _, pattern := range o.Only {
				ok, err := path.Match(pattern, m.Name)
				if err != nil {
					return nil, fmt.Errorf("study: --only %q: %w", pattern, err)
				}
				asked = asked || ok
			}
			if !asked {
				continue
			}
			w := wanted{method: m, seed: uint64(seed)}
			var err error
			if w.text, err = o.spec(m, w.seed); err != nil {
				return nil, err
			}
			if w.spec, err = digest(w.text); err != nil {
				return nil, err
			}
			runs = append(runs, w)
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("study: --only %q is none of %s", strings.Join(o.Only, ","), strings.Join(Names(), ", "))
	}
	return runs, nil
}

// missing lists the runs without a record. A record of another spec is an error.
func missing(runs []wanted, records []Record) (todo []wanted, err error) {
	for _, w := range runs {
		known := false
		for _, r := range records {
			if r.Method != w.method.Name || r.Seed != w.seed {
				continue
			}
			if known = true; r.Spec != w.spec {
				return nil, fmt.Errorf("study: the record of %s is of %d tokens or of other settings: use another --out", r.Name(), r.Until)
			}
		}
		if !known {
			todo = append(todo, w)
		}
	}
	return todo, nil
}

// Run makes the runs without a record, as one Sweep on a dev stack of the study's own. Then it writes the table and
// the plot of all records, and prints the table.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	runs, err := o.chosen()
	if err != nil {
		return err
	}
	records, err := Read(o.Out)
	if err != nil {
		return err
	}
	todo, err := missing(runs, records)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%d runs until %d sampled tokens each, %d of them done already\n", len(runs), o.Tokens, len(runs)-len(todo))
	if len(todo) > 0 {
		if records, err = o.make(ctx, todo, records, progress); err != nil {
			return err
		}
	}
	table := Table(records)
	plotted, err := Plot(records)
	if err != nil {
		return err
	}
	folder := study.Folder(o.Out)
	if err := errors.Join(folder.Write("table.md", []byte(table)), folder.Write("success.svg", plotted)); err != nil {
		return err
	}
	fmt.Fprint(out, table)
	return nil
}
