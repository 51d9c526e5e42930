package spec

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/strict"
)

// FromStarter is the Policy.From of a policy made from nothing.
const FromStarter = "starter"

// The kinds of Origin.
const (
	OriginStarter = "starter"
	OriginHub     = "hf"
	OriginFolder  = "folder"
	OriginModel   = "model"
)

// Origin is a Policy.From taken apart.
type Origin struct {
	// Kind is OriginStarter, OriginHub, OriginFolder or OriginModel; of a teacher also OriginRun or FromSelf.
	Kind string
	// Name is the hub name, the folder's path, the model's 12 hex digits or the run's id;
	// empty for the starter.
	Name string
	// Revision is a hub name's branch, tag or commit; empty if none is named.
	Revision string
	// Version is that of a run's policy, or NewestSnapshot; 0 of other kinds.
	Version int
}

var (
	hubName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$`)
	hubRevision = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)
	modelDigest = regexp.MustCompile(`^[0-9a-f]{12}$`)
)

const originAllowed = `"starter", "hf:NAME", "hf:NAME@REVISION", "folder:PATH" or "model:" and 12 hex digits`

// originOf takes a Policy.From apart.
func originOf(from string) (Origin, error) {
	kind, name, found := strings.Cut(from, ":")
	if !found {
		if from == FromStarter {
			return Origin{Kind: OriginStarter}, nil
		}
		hint := cmp.Or(strict.DidYouMean(from, []string{FromStarter}), `a hub name is written "hf:NAME", a folder "folder:PATH"`)
		return Origin{}, errors.New(hint)
	}
	origin := Origin{Kind: kind, Name: name}
	switch kind {
	case OriginHub:
		origin.Name, origin.Revision, found = strings.Cut(name, "@")
		if !hubName.MatchString(origin.Name) || strings.Contains(origin.Name, "..") {
			return Origin{}, fmt.Errorf("%s is no hub name", strict.Quote(origin.Name))
		}
		if found && (!hubRevision.MatchString(origin.Revision) || strings.Contains(origin.Revision, "..")) {
			return Origin{}, fmt.Errorf("%s is no revision", strict.Quote(origin.Revision))
		}
	case OriginFolder:
		if name == "" || len(name) > 4096 || strings.ContainsRune(name, 0) {
			return Origin{}, fmt.Errorf("%s is no path", strict.Quote(name))
		}
	case OriginModel:
		if !modelDigest.MatchString(name) {
			return Origin{}, fmt.Errorf("%s is not 12 hex digits in lower case", strict.Quote(name))
		}
	default:
		hint := strict.DidYouMean(kind, []string{OriginHub, OriginFolder, OriginModel})
		return Origin{}, errors.New(cmp.Or(hint, "nothing is known about "+strict.Quote(kind+":")))
	}
	return origin, nil
}

// checkOrigin is originOf as a rule's check.
func checkOrigin(from string) string {
	if _, err := originOf(from); err != nil {
		return err.Error()
	}
	return ""
}

func checkEnvironmentName(name string) string {
	if envs.ValidName(name) {
		return ""
	}
	return "lower-case letters, digits, _ and - only"
}

// checkBase is what is wrong with a base model's name.
func checkBase(from string) string {
	if from == FromStarter {
		return "a starter is made by a run, and no adapters name it"
	}
	return checkOrigin(from)
}

// HubBase is the hub's model that adapters name as their base; "" if the name is none of the
// hub's.
func HubBase(name string) string {
	from := OriginHub + ":" + name
	if name == "" || checkOrigin(from) != "" {
		return ""
	}
	return from
}

const modelAllowed = `"hf:NAME", "hf:NAME@REVISION", "folder:PATH" or "model:" and 12 hex digits`
