package methods

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/lab/study"
)

// Options select what is run and where its records are.
type Options struct {
	// Worker configures the device.
	Worker workers.Options
	// Seeds is how many runs each method has with its better learning rate, with the seeds 1, 2, ….
	Seeds int
	// Tokens is after how many sampled tokens those end.
	Tokens int
	// Out is the folder of the records, the table and the plot.
	Out string
	// Task is what the methods are compared on, one of Tasks; empty is Lakes.
	Task string
	// Only restricts the methods to these names or patterns; empty is all.
	Only []string
	// small are fields of every spec that tests replace.
	small map[string]any
}

// A method is tried with each learning rate on the seeds 1 to triedSeeds, for a triedShare of the tokens.
const (
	triedSeeds = 2
	triedShare = 3
)

// tried is after how many sampled tokens a run ends that tries a learning rate.
func (o Options) tried() int { return o.Tokens / triedShare }

// task is what the methods are compared on. A name that there is not gives no methods; chosen refuses it.
func (o Options) task() task { return tasks[cmp.Or(o.Task, Lakes)] }

// spec is the JSON of a method's run.
func (o Options) spec(m Method, seed uint64, rate float64, tokens int) ([]byte, error) {
	text, err := o.task().spec(m, seed, rate, tokens)
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

// Names lists the names of the methods that are compared on a task, or of those that are compared only where they are named.
func Names(name string, asked bool) []string {
	var names []string
	of := tasks[name]
	for _, m := range of.methods() {
		if of.usual(m) != asked {
			names = append(names, m.Name)
		}
	}
	return names
}

// wanted is a run of the study.
type wanted struct {
	method Method
	rate   float64
	tokens int
	seed   uint64
	text   []byte
	spec   string // its digest
}

// setting names what the run shares with those of other seeds.
func (w wanted) setting() string { return settingOf(w.method.Name, w.rate, w.tokens) }

// has says whether a record is of the run.
func (w wanted) has(r Record) bool {
	return r.Method == w.method.Name && r.Rate == w.rate && r.Until == w.tokens && r.Seed == w.seed
}

// asked are the methods that are compared.
func (o Options) asked() ([]Method, error) {
	var out []Method
	task := o.task()
	for _, m := range task.methods() {
		yes := len(o.Only) == 0 && task.usual(m)
		for _, pattern := range o.Only {
			ok, err := path.Match(pattern, m.Name)
			if err != nil {
				return nil, fmt.Errorf("study: --only %q: %w", pattern, err)
			}
			yes = yes || ok
		}
		if yes {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		var names []string
		for _, m := range task.methods() {
			names = append(names, m.Name)
		}
		return nil, fmt.Errorf("study: --only %q is none of %s", strings.Join(o.Only, ","), strings.Join(names, ", "))
	}
	return out, nil
}

// chosen lists the runs that try learning rates, and the others of the methods whose rates have been tried: each seed by
// seed, so that an interrupted study has nearly as many seeds of each method.
func (o Options) chosen(records []Record) ([]wanted, error) {
	if o.Seeds < 1 || o.Tokens < triedShare {
		return nil, fmt.Errorf("study: %d seeds and %d tokens: at least 1 and %d", o.Seeds, o.Tokens, triedShare)
	}
	if _, ok := tasks[cmp.Or(o.Task, Lakes)]; !ok {
		return nil, fmt.Errorf("study: --task %q is none of %s", o.Task, strings.Join(Tasks, ", "))
	}
	methods, err := o.asked()
	if err != nil {
		return nil, err
	}
	rates := o.task().Rates
	var runs []wanted
	want := func(m Method, seed int, rate float64, tokens int) error {
		w := wanted{method: m, seed: uint64(seed), rate: rate, tokens: tokens}
		var err error
		if w.text, err = o.spec(m, w.seed, rate, tokens); err != nil {
			return err
		}
		if w.spec, err = digest(w.text); err != nil {
			return err
		}
		runs = append(runs, w)
		return nil
	}
	for seed := 1; seed <= triedSeeds && len(rates) > 1; seed++ {
		for _, m := range methods {
			for _, rate := range rates {
				if err := want(m, seed, rate, o.tried()); err != nil {
					return nil, err
				}
			}
		}
	}
	for seed := 1; seed <= o.Seeds; seed++ {
		for _, m := range methods {
			if rate, ok := better(records, m.Name, rates, o.tried()); ok {
				if err := want(m, seed, rate, o.Tokens); err != nil {
					return nil, err
				}
			}
		}
	}
	return runs, nil
}

// better is the learning rate whose runs until so many tokens had the higher mean success at their end, the lower rate of
// equal ones; false while some of them are not recorded. The only one of rates is the better one.
func better(records []Record, method string, rates []float64, tokens int) (best float64, ok bool) {
	if len(rates) == 1 {
		return rates[0], true
	}
	highest := math.Inf(-1)
	for _, rate := range rates {
		var last []float64
		for _, r := range records {
			if r.Method == method && r.Rate == rate && r.Until == tokens && r.Seed <= triedSeeds {
				last = append(last, r.last())
			}
		}
		if len(last) < triedSeeds {
			return 0, false
		}
		if mean := statistics.Mean(last, confidence).Mean; mean > highest {
			best, highest = rate, mean
		}
	}
	return best, true
}

// missing lists the runs without a record. A record of another study is an error.
func (o Options) missing(runs []wanted, records []Record) (todo []wanted, err error) {
	other := func(r Record) error {
		return fmt.Errorf("study: the record of %s is of other settings or another number of --tokens: use another --out", r.Name())
	}
	for _, r := range records {
		if r.Until != o.Tokens && r.Until != o.tried() {
			return nil, other(r)
		}
	}
	for _, w := range runs {
		n := slices.IndexFunc(records, w.has)
		if n < 0 {
			todo = append(todo, w)
		} else if records[n].Spec != w.spec {
			return nil, other(records[n])
		}
	}
	return todo, nil
}

// Run makes the runs without a record, as one Sweep on a dev stack of the study's own. Then it writes the table and
// the plot of all records, and prints the table.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	records, err := Read(o.Out)
	if err != nil {
		return err
	}
	for { // what was tried says what else is run
		runs, err := o.chosen(records)
		if err != nil {
			return err
		}
		todo, err := o.missing(runs, records)
		if err != nil {
			return err
		}
		tries := ""
		if len(o.task().Rates) > 1 {
			tries = fmt.Sprintf(", or %d to try learning rates", o.tried())
		}
		fmt.Fprintf(progress, "%d runs until %d sampled tokens each%s: %d of them done already\n", len(runs), o.Tokens, tries, len(runs)-len(todo))
		if len(todo) == 0 {
			break
		}
		if records, err = o.make(ctx, todo, records, progress); err != nil {
			return err
		}
	}
	table := o.task().table(records)
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
