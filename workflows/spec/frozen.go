package spec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/cost"
)

// Frozen is a model beside the policy that is not trained: a teacher, which scores the policy's rows, or a judge.
type Frozen struct {
	// From is as Policy.From, but for the starter, or OriginRun, a run's id and, behind @, a version; see Origin.
	From string `json:"from"`
	// Model is the digest of the model's folder in the store (store.FolderDigest): the start of a run writes it down.
	Model string `json:"model,omitempty"`
	// Network is its shape, by which sizes are estimated; nil where it is not known. It is not part of the spec.
	Network *cost.Network `json:"-"`
}

// OriginRun is the kind of an Origin that is a snapshot of a run. A policy has none of it: a run begins with another's by
// Train.From.
const OriginRun = "run"

// FrozenAllowed says what Frozen.From may be.
const FrozenAllowed = `"hf:NAME", "hf:NAME@REVISION", "folder:PATH", "model:" and 12 hex digits, or "run:ID@VERSION"`

// Origin takes From apart. The error says what is wrong with it.
func (f Frozen) Origin() (Origin, error) {
	name, is := strings.CutPrefix(f.From, OriginRun+":")
	if !is {
		out, err := originOf(f.From)
		if err == nil && out.Kind == OriginStarter {
			err = errors.New(`a starter is made by a run: name that run, as "run:ID@VERSION"`)
		}
		return out, err
	}
	out := Origin{Kind: OriginRun, Name: name, Version: NewestSnapshot}
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		n, err := strconv.Atoi(name[at+1:])
		if err != nil || n < 0 || strconv.Itoa(n) != name[at+1:] {
			return Origin{}, fmt.Errorf("%s is no version", strict.Quote(name[at+1:]))
		}
		out.Name, out.Version = name[:at], n
	}
	if wrong := checkRun(out.Name); wrong != "" {
		return Origin{}, fmt.Errorf("%s is no run's id: %s", strict.Quote(out.Name), wrong)
	}
	return out, nil
}

// NewestSnapshot is the Origin.Version of a run's newest snapshot.
const NewestSnapshot = -1

// checkFrozen says what is wrong with a Frozen.From; "" if nothing is.
func checkFrozen(from string) string {
	if _, err := (Frozen{From: from}).Origin(); err != nil {
		return err.Error()
	}
	return ""
}

func checkFolderDigest(text string) string {
	if canon.IsDigest(text) {
		return ""
	}
	return strict.Quote(text) + " is not 64 hex digits in lower case"
}
