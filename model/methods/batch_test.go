package methods_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/methods"
)

// Nothing is learned at other places than those of Learns, or of the mask, whatever the rollout.
func TestReturnsAreWhereTheyAreLearned(t *testing.T) {
	for _, a := range methods.Algorithms {
		in := credittest.Rollout(t, credittest.SomeOptions)
		learns := in.Mask
		for row, values := range in.Values {
			for range max(a.Values, 1) - 1 {
				in.Values[row] = append(in.Values[row], values...)
			}
		}
		o := credittest.SomeOptions
		o.Algorithm = a.Name
		_, returns, err := methods.Compute(in, o)
		require.NoError(t, err)
		if returns == nil {
			require.Nil(t, a.Learns, a.Name)
			continue
		}
		if a.Learns != nil {
			learns = a.Learns(in, o)
		}
		some := false
		for row := range returns {
			require.Len(t, learns[row], len(returns[row]), a.Name)
			for at, g := range returns[row] {
				some = some || learns[row][at]
				require.True(t, g == 0 || learns[row][at], "%s: row %d, %d has %v", a.Name, row, at, g)
			}
		}
		require.True(t, some, a.Name)
	}
}

// An algorithm that gets a batch without one of its fields, or with a row of it too few, says so if it
// reads it, and does the same if not.
func TestWhatABatchLacks(t *testing.T) {
	for _, a := range methods.Algorithms {
		batch := func() reflect.Value {
			in := credittest.Batch(t, a)
			return reflect.ValueOf(&in).Elem()
		}
		whole := batch().Interface().(credit.Input)
		o := credit.Options{Algorithm: a.Name, NormalizeByStd: true, Gamma: 0.5, StepWeight: 1}
		want, learned, err := methods.Compute(whole, o)
		require.NoError(t, err)
		for i := range batch().NumField() {
			name := batch().Type().Field(i).Name
			if name == "Lengths" || name == "Past" || name == "Returns" && a.ByRole {
				continue // of every row, by construction; what may be missing
			}
			for _, lacks := range []string{"all", "a row", "one of a row"} {
				in := batch()
				field := in.Field(i)
				switch rows := field.Len(); {
				case lacks == "all":
					field.SetZero()
				case lacks == "a row":
					field.Set(field.Slice(0, rows-1))
				case name != "Turns" && field.Index(0).Kind() == reflect.Slice && field.Index(0).Len() != whole.Lengths[0]:
					// neither turns nor tokens, which are the shape
					field.Index(0).Set(field.Index(0).Slice(0, field.Index(0).Len()-1))
				}
				got, returns, err := methods.Compute(in.Interface().(credit.Input), o)
				if err == nil {
					require.Equal(t, want, got, "%s: %s lacks %s", a.Name, name, lacks)
					require.Equal(t, learned, returns, "%s: %s lacks %s", a.Name, name, lacks)
					continue
				}
				require.True(t, errors.Is(err, credit.ErrInput) || errors.Is(err, credit.ErrRewards), "%s: %s lacks %s: %v", a.Name, name, lacks, err)
			}
		}
	}
}
