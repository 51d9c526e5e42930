package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// ErrNothingToCompare says that the runs named cannot be compared.
var ErrNothingToCompare = errors.New("nothing to compare")

// LoadRuns reads runs to compare them, as a [Sweep] whose settings are their specs: runs
// whose resolved specs differ in the seed alone are the seeds of one setting. A sweep's
// id stands for those of its trials that have begun. It returns [store.ErrNotFound] if the
// store has nothing of a run, and [ErrNothingToCompare] if a run is named twice, or no
// run has an iteration.
func LoadRuns(ctx context.Context, from store.Store, ids []string) (Sweep, error) {
	s := Sweep{Comparison: true, Goal: sweep.Maximize, ID: titleOf(ids)}
	read := make([][]*Run, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, id := range ids {
		if slices.Index(ids, id) < i {
			return s, fmt.Errorf("run %q is named twice: %w", id, ErrNothingToCompare)
		}
		group.Go(func() (err error) {
			read[i], err = loadNamed(ctx, from, id)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return s, err
	}
	committed := false
	for _, r := range slices.Concat(read...) {
		if slices.ContainsFunc(s.Trials, func(t Trial) bool { return t.Label == r.ID }) {
			return s, fmt.Errorf("run %q is named twice, by itself and by its sweep: %w", r.ID, ErrNothingToCompare)
		}
		s.add(r)
		committed = committed || len(r.Branches) > 0
	}
	if !committed {
		return s, fmt.Errorf("no iteration of %s is committed yet: %w", strings.Join(ids, ", "), ErrNothingToCompare)
	}
	s.nameSettings()
	s.chooseMetrics()
	return s, nil
}

// loadNamed reads a run, or the begun trials of a sweep.
func loadNamed(ctx context.Context, from store.Store, id string) ([]*Run, error) {
	r, err := Load(ctx, from, id)
	if err == nil {
		r.slim()
		return []*Run{r}, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	trials, sweepErr := LoadSweep(ctx, from, id)
	if errors.Is(sweepErr, store.ErrNotFound) {
		return nil, err // the run's: it says more
	}
	if sweepErr != nil {
		return nil, sweepErr
	}
	var out []*Run
	for _, t := range trials.Trials {
		if t.Run != nil {
			out = append(out, t.Run)
		}
	}
	return out, nil
}

func titleOf(ids []string) string {
	if len(ids) > 3 {
		return fmt.Sprintf("%s, %s and %d more", ids[0], ids[1], len(ids)-2)
	}
	if len(ids) < 2 {
		return strings.Join(ids, "")
	}
	return strings.Join(ids[:len(ids)-1], ", ") + " and " + ids[len(ids)-1]
}

// add adds a run; nameSettings names its setting.
func (s *Sweep) add(r *Run) {
	s.Trials = append(s.Trials, Trial{Label: r.ID, Seed: r.Spec.Seed, Of: r.Spec.Iterations, Spec: r.SpecText, Run: r})
	for _, m := range r.Missing {
		m.What = r.ID + ": " + m.What
		s.Missing = append(s.Missing, m)
	}
	if len(r.Branches) == 0 {
		s.Missing = append(s.Missing, Missing{What: r.ID + ": its iterations", Why: "none is committed yet"})
	}
}

// nameSettings makes one setting of the runs whose specs differ in the seed and the
// description alone, and names it by what their ids begin with.
func (s *Sweep) nameSettings() {
	var groups [][]int
	at := map[string]int{}
	for i, t := range s.Trials {
		key := specWithoutSeed(t.Spec)
		if key == "" {
			key = t.Label // without a spec it is like no other
		}
		k, ok := at[key]
		if !ok {
			k = len(groups)
			at[key], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	taken := map[string]bool{}
	for _, of := range groups {
		name := s.Trials[of[0]].Label
		if len(of) > 1 {
			for _, i := range of[1:] {
				name = commonPrefix(name, s.Trials[i].Label)
			}
			if name = trimSeed(name); name == "" || taken[name] {
				name = fmt.Sprintf("%s and %d more", s.Trials[of[0]].Label, len(of)-1)
			}
		}
		taken[name] = true
		for _, i := range of {
			s.Trials[i].Setting = name
		}
	}
}

// specWithoutSeed is a spec in canonical form without what does not make it another
// setting; empty if there is none.
func specWithoutSeed(text json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return ""
	}
	delete(fields, "seed")
	delete(fields, "description")
	b, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(b)
}

func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// trimSeed is the beginning of ids without the beginning of their seeds: "ppo-seed1" of
// ppo-seed10 and ppo-seed11 is "ppo".
func trimSeed(name string) string {
	const between = "-_./,=: "
	name = strings.TrimRight(strings.TrimRight(name, "0123456789"), between)
	for _, word := range []string{"seed", "s"} {
		if before, ok := strings.CutSuffix(name, word); ok && before != strings.TrimRight(before, between) {
			return strings.TrimRight(before, between)
		}
	}
	return name
}

// chooseMetrics takes what all tables show: the success of the newest evaluation first if
// every run with iterations has one, since it is of more episodes than an iteration is.
func (s *Sweep) chooseMetrics() {
	evaluation := sweep.EvaluationPrefix + collapse.MetricSuccess
	all, some := true, false
	for _, t := range s.Trials {
		if len(t.Run.Branches) == 0 {
			continue
		}
		_, at := t.Run.value(evaluation)
		all, some = all && at >= 0, some || at >= 0
	}
	s.Metrics = []string{collapse.MetricSuccess, "reward/mean"}
	switch {
	case all && some:
		s.Metrics = append([]string{evaluation}, s.Metrics...)
	case some:
		s.Metrics = append(s.Metrics, evaluation)
	}
}

// JSON are the numbers of the page of a comparison or a sweep.
func (s Sweep) JSON() ([]byte, error) { return numbers(sweepPageOf(s)) }

// JSON are the numbers of a run's page.
func (r *Run) JSON() ([]byte, error) { return numbers(runPageOf(r)) }

func numbers(page any) ([]byte, error) {
	b, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the report's numbers: %w", err)
	}
	return append(b, '\n'), nil
}
