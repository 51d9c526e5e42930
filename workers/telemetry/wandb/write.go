package wandb

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/reprise-rl/reprise/workers/telemetry/curves"
)

// ID is the id of a branch in wandb: 16 hexadecimal digits of the run id's SHA-256 and the
// branch, since wandb allows fewer characters than a run id has.
func ID(run string, branch int) string {
	sum := sha256.Sum256([]byte(run))
	return fmt.Sprintf("%s-b%d", hex.EncodeToString(sum[:8]), branch)
}

// Folder is the name of a branch's folder as `wandb sync` expects it. The time in it is
// not known, so it is 1970.
func Folder(run string, branch int) string {
	return "offline-run-19700101_000000-" + ID(run, branch)
}

// File is the content of a branch's file: header, run with its config, a row of history
// for each step, summary, exit. The same branch has the same bytes.
func File(run string, b curves.Branch) []byte {
	f := newFile()
	f.record(recordHeader, appendMessage(nil, headerVersion, appendText(nil, versionProducer, "reprise")))
	var config []byte
	for _, c := range [][2]string{
		{"reprise.run", textJSON(run)},
		{"reprise.branch", strconv.Itoa(b.Number)},
		{"reprise.abandoned", strconv.FormatBool(b.Abandoned)},
		{"reprise.settings_digest", textJSON(b.Settings)},
		{"reprise.manifest", textJSON(b.Manifest)},
	} {
		config = appendMessage(config, update, item(c[0], c[1]))
	}
	var r []byte
	r = appendText(r, runID, ID(run, b.Number))
	r = appendMessage(r, runConfig, config)
	r = appendText(r, runGroup, run)
	r = appendText(r, runName, fmt.Sprintf("%s/b%d", run, b.Number))
	r = appendMessage(r, runStartTime, nil) // an empty Timestamp is 1970: artifacts have no time
	f.record(recordRun, r)
	for _, s := range b.Steps {
		f.record(recordHistory, history(s))
	}
	f.record(recordSummary, summary(b.Steps))
	f.record(recordExit, protowire.AppendVarint(protowire.AppendTag(nil, exitCode, protowire.VarintType), 0))
	return f.bytes
}

// summary has each name's newest value, in the order in which the names came first.
func summary(steps []curves.Step) []byte {
	newest := map[string]float64{}
	var names []string
	for _, s := range steps {
		for _, v := range s.Values {
			if _, ok := newest[v.Name]; !ok {
				names = append(names, v.Name)
			}
			newest[v.Name] = v.Number
		}
	}
	var out []byte
	for _, name := range names {
		out = appendMessage(out, update, item(name, numberJSON(newest[name])))
	}
	if len(steps) > 0 {
		out = appendMessage(out, update, item("_step", strconv.FormatInt(steps[len(steps)-1].Number, 10)))
	}
	return out
}

// Write puts each branch into dir/[Folder]/run-[ID].wandb and returns the folders. A file
// that is there is replaced in one rename.
func Write(dir, run string, branches []curves.Branch) ([]string, error) {
	var folders []string
	for _, b := range branches {
		folder := filepath.Join(dir, Folder(run, b.Number))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("write wandb's files: %w", err)
		}
		part := filepath.Join(folder, ".part") // not "*.wandb": nobody should sync half of it
		if err := os.WriteFile(part, File(run, b), 0o644); err != nil {
			return nil, fmt.Errorf("write wandb's files: %w", err)
		}
		if err := os.Rename(part, filepath.Join(folder, "run-"+ID(run, b.Number)+".wandb")); err != nil {
			return nil, fmt.Errorf("write wandb's files: %w", err)
		}
		folders = append(folders, folder)
	}
	return folders, nil
}
