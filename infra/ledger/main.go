// Command ledger compares what two builds compute: the program of a commit and that of the working
// tree. Each runs the starter presets, cut down to two iterations, on servers of its own and from
// outside, so that nothing of the other tree has to compile here. What is compared is the state
// fingerprint, the manifest's digest and the hashes of the programs. `make ledger BASE=REV` runs it,
// once bin/reprise is built.
//
//	ledger -base REV [-presets a,b]
//
// It exits with 1 if a preset differs. The results of a commit are kept in .reprise/ledger, by the
// fingerprint of the device, so that the second comparison with it takes half the time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

func main() {
	revision := flag.String("base", "", "commit to compare the working tree with")
	names := flag.String("presets", "", "presets to compare, with commas between (default: all runs of a starter)")
	dir := flag.String("dir", ".reprise/ledger", "folder of results, programs and logs")
	program := flag.String("program", "bin/reprise", "program of the working tree")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	same, err := ledger(ctx, *revision, namesOf(*names), *dir, *program, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if !same {
		os.Exit(1)
	}
}

// ledger compares, and says whether all is the same.
func ledger(ctx context.Context, revision string, names []string, dir, program string, out io.Writer) (bool, error) {
	if revision == "" {
		return false, errors.New("name the commit: make ledger BASE=REV")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	b, err := findBase(ctx, revision, dir)
	if err != nil {
		return false, err
	}
	before, now, err := choose(ctx, b, names)
	if err != nil {
		return false, err
	}
	if err := b.build(ctx, out); err != nil {
		return false, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return false, err
	}

	fmt.Fprintf(out, "base is %s, here is %s\n", b.short(), program)
	began := time.Now()
	earlier, err := resultsOf(ctx, b, before, out)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "base: %s\n", minutes(began))

	began = time.Now()
	var verdicts []verdict
	tell := func(base, here *result) {
		verdicts = append(verdicts, compare(base, here))
		fmt.Fprintf(out, "%*d  %s", len(strconv.Itoa(len(now))), len(verdicts), describe(base, here))
	}
	here := side{name: "here", program: program, dir: dir}
	if err := here.run(ctx, sorted(now), func(r result) {
		var base *result
		if was, ok := earlier[r.Preset]; ok {
			base = &was
		}
		tell(base, &r)
	}); err != nil {
		return false, err
	}
	for _, p := range sorted(before) {
		if _, ok := now[p.name]; !ok {
			was := earlier[p.name]
			tell(&was, nil)
		}
	}
	fmt.Fprintf(out, "here: %s\n%s\n", minutes(began), closing(verdicts))
	return !slices.ContainsFunc(verdicts, verdict.bad), nil
}

// choose chooses the presets of both sides, each from its own files.
func choose(ctx context.Context, b base, names []string) (before, now map[string]preset, err error) {
	files, err := b.presets(ctx)
	if err != nil {
		return nil, nil, err
	}
	if before, err = presetsOf(files, names); err != nil {
		return nil, nil, err
	}
	if files, err = presetsHere(); err != nil {
		return nil, nil, err
	}
	if now, err = presetsOf(files, names); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		_, was := before[name]
		if _, is := now[name]; !was && !is {
			return nil, nil, fmt.Errorf("choose the preset %q: %w", name, errNoPreset)
		}
	}
	return before, now, nil
}

var errNoPreset = errors.New("there is none of that name that is a single run of a starter")

// resultsOf are the results of the base: those that were kept, and those that are missing.
func resultsOf(ctx context.Context, b base, presets map[string]preset, out io.Writer) (map[string]result, error) {
	s := side{name: "base", program: b.program(), dir: b.dir}
	fingerprint, err := s.fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	k, err := readKept(b.cache(), fingerprint)
	if err != nil {
		return nil, err
	}
	results := map[string]result{}
	var missing []preset
	for _, p := range sorted(presets) {
		if r, ok := k.has(p); ok {
			results[p.name] = r
			continue
		}
		missing = append(missing, p)
	}
	if len(results) > 0 {
		fmt.Fprintf(out, "base: %d of %d presets are kept from before\n", len(results), len(presets))
	}
	if len(missing) == 0 {
		return results, nil
	}
	n := 0
	var keepErr error
	err = s.run(ctx, missing, func(r result) {
		n++
		results[r.Preset] = r
		fmt.Fprintf(out, "base %d of %d: %s, %.1f s\n", n, len(missing), r.Preset, r.Seconds)
		keepErr = errors.Join(keepErr, k.put(b.cache(), r))
	})
	return results, errors.Join(err, keepErr)
}

func sorted(presets map[string]preset) []preset {
	var out []preset
	for _, name := range slices.Sorted(maps.Keys(presets)) {
		out = append(out, presets[name])
	}
	return out
}

func minutes(since time.Time) string { return fmt.Sprintf("%.1f minutes", time.Since(since).Minutes()) }
