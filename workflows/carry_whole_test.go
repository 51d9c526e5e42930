package workflows

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/option"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// filler sets every field of a value, the nested ones too, to something that is not
// its zero, each to something else.
type filler struct {
	t *testing.T
	n int
}

func (f *filler) fill(v reflect.Value, path string) {
	f.t.Helper()
	f.n++
	if raw, ok := v.Addr().Interface().(*json.RawMessage); ok {
		*raw = json.RawMessage(fmt.Sprintf(`{"n":%d}`, f.n))
		return
	}
	if own, ok := v.Addr().Interface().(*option.Values); ok {
		for _, o := range methods.Options() {
			value := any(float64(f.n))
			switch {
			case o.Switch:
				value = true
			case o.Choices != nil:
				value = o.Choices[0]
			case o.Whole:
				value = f.n
			}
			for _, section := range []string{option.Credit, option.Rollout, option.Update} {
				if strings.HasSuffix(strings.ToLower(path), section+".own") {
					*own = methods.Options().With(section, *own, o.Name, value)
				}
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", f.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, path)
			f.fill(value, path)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := path + "." + v.Type().Field(i).Name
			require.True(f.t, v.Field(i).CanSet(), "%s is not exported: JSON would lose it", name)
			f.fill(v.Field(i), name)
		}
	default:
		f.t.Fatalf("%s is a %s: say how it is filled", path, v.Type())
	}
}

// filled is a value of which every field is set.
func filled[T any](t *testing.T) T {
	t.Helper()
	var v T
	f := &filler{t: t}
	f.fill(reflect.ValueOf(&v).Elem(), reflect.TypeFor[T]().String())
	return v
}

// comesBack requires that a filled value is the same after it was a payload.
func comesBack[T any](t *testing.T) {
	t.Helper()
	want := filled[T](t)
	c := converter.GetDefaultDataConverter()
	payload, err := c.ToPayload(want)
	require.NoError(t, err)
	var got T
	require.NoError(t, c.FromPayload(payload, &got))
	require.Equal(t, want, got, "%T loses something on its way", want)
}

// Values that travel through Temporal arrive with all of their fields: the carried state,
// and the inputs and results of activities.
func TestWhatTravelsComesBack(t *testing.T) {
	comesBack[Carry](t)
	comesBack[SweepCarry](t)
	comesBack[TrialReport](t)
	comesBack[RollTo](t)
	comesBack[TrainResult](t)
	comesBack[activities.ResolveInput](t)
	comesBack[activities.ResolveResult](t)
	comesBack[activities.LoadInput](t)
	comesBack[activities.LoadResult](t)
	comesBack[activities.FindInput](t)
	comesBack[activities.WarmStartInput](t)
	comesBack[activities.WarmStartResult](t)
	comesBack[activities.RestoreInput](t)
	comesBack[activities.RestoreResult](t)
	comesBack[activities.GenerateInput](t)
	comesBack[activities.GenerateResult](t)
	comesBack[activities.JudgeInput](t)
	comesBack[activities.JudgeResult](t)
	comesBack[activities.GradeInput](t)
	comesBack[activities.GradeResult](t)
	comesBack[activities.StepInput](t)
	comesBack[activities.StepResult](t)
	comesBack[activities.SelectInput](t)
	comesBack[activities.SelectResult](t)
	comesBack[activities.ScoreInput](t)
	comesBack[activities.ScoreResult](t)
	comesBack[activities.DiagnoseInput](t)
	comesBack[activities.DiagnoseResult](t)
	comesBack[activities.CreditInput](t)
	comesBack[activities.CreditResult](t)
	comesBack[activities.UpdateInput](t)
	comesBack[activities.UpdateResult](t)
	comesBack[activities.SnapshotInput](t)
	comesBack[activities.SnapshotResult](t)
	comesBack[activities.MeasureInput](t)
	comesBack[activities.MeasureResult](t)
	comesBack[activities.CommitInput](t)
	comesBack[activities.CommitResult](t)
}

// A run that has nothing to do but to begin a new history hands all of its carry on.
func TestContinueAsNewCarriesEverything(t *testing.T) {
	s := &stage{plan: testPlan()}
	p := newPlay(t, s)
	want := filled[Carry](t)
	want.Paused = false // a paused run waits, whatever its history
	want.Next, *want.StopAfter = 1, 2
	want.Flags.SessionHeartbeat = time.Minute
	p.SetContinueAsNewSuggested(true)
	given := want
	p.train(&given)
	require.Equal(t, []string{"Load"}, p.order)
	require.Equal(t, &want, carried(t, p))
}

// Wherever a new history begins around a roll-back, the branch's first manifest says why
// it was opened, once, and the commits are the same as in one history.
func TestBranchIsOpenedAcrossHistories(t *testing.T) {
	asked := func(p *play) { p.when("Generate", 4, func() { p.send("roll-back", RollTo{Iteration: 1}) }) }
	for name, action := range map[string]collapse.Action{"detected": collapse.RollBack, "asked for": collapse.Warn} {
		run := func(carry *Carry, before []activities.CommitInput, disturb func(*play)) (*stage, *play) {
			s, p := collapsing(t, 3, 1, action)
			s.commits = append(s.commits, before...)
			if carry == nil && action == collapse.Warn {
				asked(p)
			}
			disturb(p)
			p.train(carry)
			return s, p
		}
		whole, p := run(nil, nil, func(*play) {})
		p.result()
		require.Contains(t, places(whole.commits), [2]int{1, 4})
		for place, n := range map[string]int{"Commit": 4, "Find": 1, "Restore": 2, "Credit": 5} {
			t.Run(fmt.Sprintf("%s/%s %d", name, place, n), func(t *testing.T) {
				s, p := run(nil, nil, func(p *play) {
					was := p.hooks[fmt.Sprintf("%s %d", place, n)]
					p.when(place, n, func() {
						if was != nil {
							was()
						}
						p.SetContinueAsNewSuggested(true)
					})
				})
				carry := carried(t, p)
				committed := map[string]int{"Commit": 4, "Find": 4, "Restore": 4, "Credit": 5}[place]
				require.Len(t, s.commits, committed)
				require.Equal(t, place == "Commit", carry.RollTo != nil, "decided and not done")
				require.Equal(t, place == "Find" || place == "Restore", carry.Opened != nil, "done and not written down")
				again, q := run(carry, s.commits, func(*play) {})
				q.result()
				require.Equal(t, manifests(whole.commits), manifests(again.commits))
				opened := 0
				for _, c := range again.commits {
					if c.Opened != nil {
						opened++
						require.Equal(t, 1, c.Branch)
					}
				}
				require.Equal(t, 1, opened)
			})
		}
	}
}
