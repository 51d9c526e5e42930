package gpu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/reprise-rl/reprise/workers/lab/twins"
)

// Twins is what is known of a run that was killed and of the same run undisturbed. It is the file
// PART.json in Options.Out, which a later call reads.
type Twins struct {
	Part string `json:"part"`
	// Device is the fingerprint of the device, Kind its kind.
	Device string `json:"device"`
	Kind   string `json:"kind"`
	// Iterations is how many both runs have in the end.
	Iterations int `json:"iterations"`
	// Undisturbed and Killed are what each iteration so far left.
	Undisturbed []twins.Committed `json:"undisturbed"`
	Killed      []twins.Committed `json:"killed"`
	Kills       []twins.Kill      `json:"kills"`
	// UndisturbedSeconds and KilledSeconds are the time of both, starts and compiling included, over all calls.
	UndisturbedSeconds float64 `json:"undisturbed_seconds"`
	KilledSeconds      float64 `json:"killed_seconds"`
	// Spec is the spec of both.
	Spec json.RawMessage `json:"spec"`
}

// done says whether both runs have ended, and the kills of one have their witnesses.
func (t Twins) done() bool {
	for _, k := range t.Kills {
		if k.Witness == "" {
			return false
		}
	}
	return len(t.Undisturbed) == t.Iterations && len(t.Killed) == t.Iterations && len(t.Kills) > 0
}

// same is after how many iterations, from the first, both runs had the same state and success, and how many
// iterations both have.
func (t Twins) same() (same, compared int) {
	compared = min(len(t.Undisturbed), len(t.Killed))
	for same < compared && t.Undisturbed[same] == t.Killed[same] {
		same++
	}
	return same, compared
}

// readTwins reads the record of a part, or returns the one that begins. A record of another spec or device
// is refused.
func readTwins(out string, begun Twins) (Twins, error) {
	file := filepath.Join(out, begun.Part+".json")
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return begun, nil
	}
	var t Twins
	if err == nil {
		err = json.Unmarshal(content, &t)
	}
	switch {
	case err != nil:
		return t, fmt.Errorf("read record %s: %w", file, err)
	case !sameRun(t.Spec, begun.Spec):
		return t, fmt.Errorf("record %s was made by another spec: remove it, or name another --out", file)
	case t.Device != begun.Device:
		return t, fmt.Errorf("record %s was made on a device with the fingerprint %s (%s), and this one is %s (%s): bits are promised on one of them alone; name another --out",
			file, t.Device, t.Kind, begun.Device, begun.Kind)
	}
	t.Spec = begun.Spec // the model's folder may be another one
	return t, nil
}

// write writes the record into the folder of the results.
func (t Twins) write(out string) error {
	content, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return fmt.Errorf("gpu: encode the record of %s: %w", t.Part, err)
	}
	return writeFile(out, t.Part+".json", append(content, '\n'))
}

// merged adds what was found of a run to what is recorded of it. A run that began anew must repeat what is
// recorded.
func merged(run string, recorded, found []twins.Committed) ([]twins.Committed, error) {
	for i := range min(len(recorded), len(found)) {
		if recorded[i] != found[i] {
			return recorded, fmt.Errorf("%w: after iteration %d run %s has the state %s, and %s is recorded", errBits, i, run, found[i].State, recorded[i].State)
		}
	}
	if len(found) > len(recorded) {
		return found, nil
	}
	return recorded, nil
}

// sameRun says whether two specs are the same but for where the model's folder is.
func sameRun(a, b []byte) bool {
	var docs [2]map[string]any
	for i, text := range [][]byte{a, b} {
		if json.Unmarshal(text, &docs[i]) != nil {
			return false
		}
		if p, ok := docs[i]["policy"].(map[string]any); ok {
			delete(p, "from")
		}
	}
	return reflect.DeepEqual(docs[0], docs[1])
}

// sameJSON says whether two documents are the same but for white space.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
