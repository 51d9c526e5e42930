package validate

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// Figures are what the seconds of an iteration are computed with: a device's data sheet, the
// shares of it that programs reach, and what was measured around it. docs/many-devices.md names the
// source of each.
type Figures struct {
	Name string `json:"name"`
	// Memory is in bytes. Operations a second are those of dense matrix products in bfloat16.
	// Bandwidth is of the device's memory, and Link that from one device to another, one way;
	// both in bytes a second.
	Memory     int64   `json:"memory_bytes"`
	Operations float64 `json:"operations_a_second"`
	Bandwidth  float64 `json:"bandwidth_bytes_a_second"`
	Link       float64 `json:"link_bytes_a_second"`
	// The shares of Operations, Bandwidth and Link that are reached.
	OperationsShare float64 `json:"operations_share"`
	BandwidthShare  float64 `json:"bandwidth_share"`
	LinkShare       float64 `json:"link_share"`
	// DecodeStep is the least seconds of a step of decoding, one token of each row of a pass: what
	// starting its kernels takes. 0 is not known.
	DecodeStep float64 `json:"decode_step_seconds"`
	// BucketWrite and BucketRead are bytes a second to and from the bucket.
	BucketWrite float64 `json:"bucket_write_bytes_a_second"`
	BucketRead  float64 `json:"bucket_read_bytes_a_second"`
	// Call is the seconds around each activity, Step those of a member's turn in the environment.
	Call float64 `json:"call_seconds"`
	Step float64 `json:"step_seconds"`
	// Detection is the seconds until the work of a machine that is lost is handed to another, with a heartbeat of 3 s;
	// Programs are those to load compiled programs.
	Detection float64 `json:"detection_seconds"`
	Programs  float64 `json:"programs_seconds"`
}

// H100 are figures of an H100 SXM with 80 GB, by its data sheet and by what programs of others reach.
// What ours reached on one is in docs/devices.
var H100 = Figures{
	Name: "H100 SXM", Memory: 80e9, Operations: 989.4e12, Bandwidth: 3.35e12, Link: 450e9,
	OperationsShare: 0.33, BandwidthShare: 0.69, LinkShare: 0.9,
	BucketWrite: 340e6, BucketRead: LoadRate,
	Call: 0.011, Step: 0.0006, Detection: 2.2, Programs: 1.3,
}

// maxFigures is the most bytes of a file of figures.
const maxFigures = 1 << 16

// ReadCard reads --card: a size of a device's memory, "h100", or the path of a JSON file with the
// figures of another device, whose name ends with .json. The figures are nil for a size.
func ReadCard(text string) (memory int64, figures *Figures, err error) {
	switch {
	case strings.EqualFold(text, "h100"):
		f := H100
		return f.Memory, &f, nil
	case strings.HasSuffix(text, ".json"):
		f, err := readFigures(text)
		if err != nil {
			return 0, nil, fmt.Errorf("--card: %w", err)
		}
		return f.Memory, &f, nil
	}
	memory, err = ParseCard(text)
	return memory, nil, err
}

func readFigures(path string) (f Figures, err error) {
	file, err := os.Open(path)
	if err != nil {
		return f, fmt.Errorf("read the figures of a device: %w", err)
	}
	defer file.Close()
	d := json.NewDecoder(io.LimitReader(file, maxFigures))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("figures %s: %w", path, err)
	}
	return f, f.check()
}

// check reports a figure that nothing can be computed with.
func (f Figures) check() error {
	positive, share := "a number above 0", "a number above 0 and at most 1"
	for _, x := range []struct {
		name  string
		value float64
		give  string
		fits  bool
	}{
		{"memory_bytes", float64(f.Memory), positive, f.Memory > 0},
		{"operations_a_second", f.Operations, positive, f.Operations > 0},
		{"bandwidth_bytes_a_second", f.Bandwidth, positive, f.Bandwidth > 0},
		{"link_bytes_a_second", f.Link, positive, f.Link > 0},
		{"operations_share", f.OperationsShare, share, f.OperationsShare > 0 && f.OperationsShare <= 1},
		{"bandwidth_share", f.BandwidthShare, share, f.BandwidthShare > 0 && f.BandwidthShare <= 1},
		{"link_share", f.LinkShare, share, f.LinkShare > 0 && f.LinkShare <= 1},
		{"bucket_write_bytes_a_second", f.BucketWrite, positive, f.BucketWrite > 0},
		{"bucket_read_bytes_a_second", f.BucketRead, positive, f.BucketRead > 0},
		{"decode_step_seconds", f.DecodeStep, "0 or more", f.DecodeStep >= 0},
		{"call_seconds", f.Call, "0 or more", f.Call >= 0},
		{"step_seconds", f.Step, "0 or more", f.Step >= 0},
		{"detection_seconds", f.Detection, "0 or more", f.Detection >= 0},
		{"programs_seconds", f.Programs, "0 or more", f.Programs >= 0},
	} {
		if !x.fits {
			return fmt.Errorf("figures %q: %s is %v: give %s", f.Name, x.name, x.value, x.give)
		}
	}
	return nil
}
