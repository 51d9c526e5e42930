package completions

import (
	"slices"

	"github.com/reprise-rl/reprise/infra/strict"
)

func (r *reading) model(n strict.Node, at string) (refusal *Refusal) {
	r.Model, refusal = text(n, at, MaxID)
	return refusal
}

func (r *reading) temperature(n strict.Node, at string) *Refusal {
	most := r.limits.Temperature
	t, ok := n.Float()
	switch {
	case !ok:
		return wrongType(n, at, "a number")
	case t < 0 || t > most:
		return refuse(CodeUnsupported, at, "%s is %s, want a number from 0 to %v, the run's", at, n.Found(), most)
	case t < smallestTemperature && t != 0 && t != most:
		return refuse(CodeUnsupported, at, "%s is %s, want 0 (greedy) or at least %v", at, n.Found(), smallestTemperature)
	}
	if t != 0 { // -0 is 0
		r.Temperature = t
	} else {
		r.Temperature = 0
	}
	return nil
}

// maxTokens reads max_tokens and its newer name.
func (r *reading) maxTokens(n strict.Node, at string) *Refusal {
	most, ok := n.Integer()
	switch {
	case !ok:
		return wrongType(n, at, "an integer")
	case most < 1 || most > int64(r.limits.MaxTokens):
		return refuse(CodeUnsupported, at, "%s is %s, want 1 to %d, the run's", at, n.Found(), r.limits.MaxTokens)
	case r.tokensBy != "" && int64(r.MaxTokens) != most:
		return refuse(CodeValue, at, "%s and %s differ: give one of them", r.tokensBy, at)
	}
	r.MaxTokens, r.tokensBy = int(most), at
	return nil
}

func (r *reading) stop(n strict.Node, at string) *Refusal {
	items, paths := []strict.Node{n}, []string{at}
	if n.Kind() == strict.Array {
		items, paths = n.Items(), make([]string, len(n.Items()))
		for i := range paths {
			paths[i] = strict.Index(at, i)
		}
	}
	if len(items) > MaxStops {
		return refuse(CodeValue, at, "%s has %d texts, want at most %d", at, len(items), MaxStops)
	}
	for i, item := range items {
		s, refusal := text(item, paths[i], MaxStop)
		if refusal != nil {
			return refusal
		}
		if s == "" {
			return refuse(CodeValue, paths[i], "%s is empty", paths[i])
		}
		r.Stop = append(r.Stop, s)
	}
	slices.Sort(r.Stop)
	r.Stop = slices.Compact(r.Stop)
	return nil
}

// one reads n: a call has one answer.
func (r *reading) one(n strict.Node, at string) *Refusal {
	if i, ok := n.Integer(); !ok {
		return wrongType(n, at, "an integer")
	} else if i != 1 {
		return refuse(CodeUnsupported, at, "%s is %s, want 1: ask again for another answer", at, n.Found())
	}
	return nil
}

func (r *reading) topLogprobs(n strict.Node, at string) *Refusal {
	if i, ok := n.Integer(); !ok {
		return wrongType(n, at, "an integer")
	} else if i != 0 {
		return refuse(CodeUnsupported, at, "%s is %s, want 0: only sampled tokens have a log-probability", at, n.Found())
	}
	return nil
}

func (r *reading) streamOptions(n strict.Node, at string) *Refusal {
	if refusal := ofKind(n, strict.Object, at, "an object"); refusal != nil {
		return refusal
	}
	if !r.Stream {
		return refuse(CodeValue, at, "%s is for calls with stream", at)
	}
	for _, m := range n.Members() {
		path := strict.Join(at, m.Key)
		if m.Key != "include_usage" {
			return refuse(CodeUnknown, path, "%s is not honoured here: leave it out", path)
		}
		if m.Value.Kind() == strict.Null {
			continue
		}
		if refusal := truth(m.Value, path, &r.Usage); refusal != nil {
			return refusal
		}
	}
	return nil
}

// only reads a field with one value that changes nothing; why says what the other would ask for in vain.
func only(want bool, why string) func(*reading, strict.Node, string) *Refusal {
	return func(_ *reading, n strict.Node, at string) *Refusal { return mustBe(want, n, at, why) }
}

func mustBe(want bool, n strict.Node, at, why string) *Refusal {
	var value bool
	if refusal := truth(n, at, &value); refusal != nil {
		return refusal
	}
	if value != want {
		return refuse(CodeUnsupported, at, "%s is %t, want %t: %s", at, value, want, why)
	}
	return nil
}

// truth reads true or false.
func truth(n strict.Node, at string, into *bool) *Refusal {
	value, ok := n.Truth()
	if !ok {
		return wrongType(n, at, "true or false")
	}
	*into = value
	return nil
}

// text reads a text of at most so many bytes; 0 sets no limit of its own.
func text(n strict.Node, at string, most int) (string, *Refusal) {
	s, ok := n.Text()
	switch {
	case !ok:
		return "", wrongType(n, at, "a text")
	case most > 0 && len(s) > most:
		return "", refuse(CodeValue, at, "%s has %d bytes, want at most %d", at, len(s), most)
	}
	return s, nil
}

func ofKind(n strict.Node, kind strict.Kind, at, want string) *Refusal {
	if n.Kind() != kind {
		return wrongType(n, at, want)
	}
	return nil
}

func wrongType(n strict.Node, at, want string) *Refusal {
	return refuse(CodeType, at, "%s is %s, want %s", at, n.Found(), want)
}
