// Package presets holds specs that are ready to start, so that the program
// carries them:
//
//	temporal workflow start --type Train --task-queue reprise \
//	    --workflow-id bandit-1 --input-file infra/presets/bandit-demo.json
package presets

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

//go:embed *.json
var files embed.FS

// Names lists the presets, sorted, without ".json".
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("presets: %v", err)) // the files are in the program
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".json")
	}
	slices.Sort(names) // in the folder "chaos-turns.json" comes before "chaos.json"
	return names
}

// Read returns a preset's JSON as it is in the repository. The error of an
// unknown name says which three it most likely means.
func Read(name string) ([]byte, error) {
	b, err := files.ReadFile(name + ".json")
	if err == nil {
		return b, nil
	}
	names := Names()
	return nil, fmt.Errorf("read preset %q: none of the %d is called so; near it are %s", name, len(names), strings.Join(strict.Near(name, names, 3), ", "))
}
