package methods

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// read says that somebody has read the options of all methods, as the spec does for its table of fields.
var read atomic.Bool

// methodName is what a method may be named.
var methodName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Register adds methods that a program links beside those of the table, behind them. A program calls it once, when it
// starts: the spec's table of fields is made of the options at its first use, and is not made again.
//
// A name that is taken, an entry that lacks something, or an option that another method declares in another way is an
// error; then nothing is added.
func Register(algorithms []credit.Algorithm, searches []search.Method) error {
	if read.Load() {
		return errors.New("methods are registered when a program starts: the fields of a spec are there already")
	}
	before, beforeSearches := Algorithms, Searches
	err := register(algorithms, searches)
	if err != nil {
		Algorithms, Searches = before, beforeSearches
	}
	return err
}

func register(algorithms []credit.Algorithm, searches []search.Method) error {
	for _, a := range algorithms {
		if err := fits(a); err != nil {
			return fmt.Errorf("algorithm %q %w", a.Name, err)
		}
		Algorithms = append(Algorithms[:len(Algorithms):len(Algorithms)], a)
	}
	for _, s := range searches {
		if err := fitsSearch(s); err != nil {
			return fmt.Errorf("search %q %w", s.Name, err)
		}
		Searches = append(Searches[:len(Searches):len(Searches)], s)
	}
	for _, a := range algorithms {
		if a.Search != "" && Search(a.Search).Name == "" {
			return fmt.Errorf("algorithm %q needs the search %q, which is not registered", a.Name, a.Search)
		}
	}
	for _, s := range searches {
		if _, ok := Find(s.Credit); s.Credit != "" && !ok {
			return fmt.Errorf("search %q needs the algorithm %q, which is not registered", s.Name, s.Credit)
		}
	}
	return nil
}

// fits is what keeps an algorithm out of the table.
func fits(a credit.Algorithm) error {
	if err := named(a.Name); err != nil {
		return err
	}
	_, taken := Find(a.Name)
	switch {
	case taken:
		return errors.New("is there already: give yours another name")
	case a.Compute == nil:
		return errors.New("has no Compute")
	case a.By == "":
		return errors.New(`has no By, which completes "rewards become advantages by …"`)
	}
	return declared(a.Own, option.Credit)
}

// fitsSearch is what keeps a search out of the table.
func fitsSearch(s search.Method) error {
	if err := named(s.Name); err != nil {
		return err
	}
	breadth, trees := s.Breadth != nil && s.Choose != nil, s.Trees != nil && s.Fork != nil
	switch {
	case Search(s.Name).Name != "":
		return errors.New("is there already: give yours another name")
	case breadth == trees:
		return errors.New("has either Breadth and Choose, or Trees and Fork")
	case s.Doc == "":
		return errors.New("has no Doc")
	case s.Memory != "" && s.Remember == nil:
		return errors.New("has a Memory and no Remember")
	}
	return declared(s.Options, option.Rollout, option.Update)
}

func named(name string) error {
	if !methodName.MatchString(name) {
		return errors.New("needs a name of lower-case letters, digits and _ that begins with a letter")
	}
	return nil
}

// declared is what is wrong with the options that a method declares, in the sections that it may have some in.
func declared(own []option.Option, sections ...string) error {
	for _, o := range own {
		switch other, there := options().Find(o.Section, o.Name); {
		case !methodName.MatchString(o.Name):
			return fmt.Errorf("declares an option %q: a name has lower-case letters, digits and _", o.Name)
		case !slices.Contains(sections, o.Section):
			return fmt.Errorf("declares the option %s: its options are in the section %s", o.Path(), strings.Join(sections, " or "))
		case o.Section == option.Credit && (strings.Count(o.Doc, "%") != 1 || !strings.Contains(o.Doc, "%s")):
			return fmt.Errorf("declares the option %s, whose Doc needs %%s once: there stand the names of the algorithms that read it", o.Path())
		case there && !same(o, other):
			return fmt.Errorf("declares the option %s in another way than a method that is there: give yours another name", o.Path())
		}
	}
	return nil
}

// same reports whether two methods mean the same values by an option.
func same(a, b option.Option) bool {
	for _, o := range []*option.Option{&a, &b} {
		o.Source, o.Doc, o.Note = "", "", ""
	}
	return reflect.DeepEqual(a, b)
}
