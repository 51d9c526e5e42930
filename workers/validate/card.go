package validate

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/model/hf/families"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Card says whether a run fits a device's memory, by estimate.
type Card struct {
	// Bytes is the memory of the device, Usable what a run may take of it: the rest is for
	// the driver, the programs and what the allocator cannot use.
	Bytes  int64 `json:"bytes"`
	Usable int64 `json:"usable_bytes"`
	// Needs is the run's peak: of several devices, that of the fullest.
	Needs int64 `json:"needs_bytes"`
	Fits  bool  `json:"fits"`
	// Programs are what the run's programs need, on the first device.
	Programs []cost.Program `json:"programs"`
	// Host is the memory of the host that the steps take besides.
	Host int64 `json:"host_bytes"`
	// Base and Snapshot are the seconds to load the base model and a snapshot at
	// LoadRate.
	Base     float64 `json:"load_base_seconds"`
	Snapshot float64 `json:"load_snapshot_seconds"`
	// Changes are changes of the spec each of which makes it fit; the last is a larger
	// device.
	Changes []string `json:"changes,omitempty"`
}

const (
	// usableShare of a device's memory is a run's; at least leastReserve is left.
	usableShare  = 0.95
	leastReserve = 512 << 20
	// hostBuffers are the parts of files in the memory of the host while they are sent and
	// read.
	hostBuffers = 512 << 20
	// LoadRate is the bytes a second that the seconds to load are computed with: reading
	// from a bucket, checking the SHA-256 and copying to the device, one after the other.
	LoadRate = 250e6
)

// ParseCard reads a device's memory: "80GB", "24GiB". 1 GB is 10⁹ bytes.
func ParseCard(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n < 1<<20 || n > 1<<50 {
		return 0, fmt.Errorf("--card %q is no size of a device's memory, such as 80GB or 24GiB", text)
	}
	return int64(n), nil
}

// usable is what a run may take of a device.
func usable(card int64) int64 {
	return max(0, min(int64(usableShare*float64(card)), card-leastReserve))
}

// cardOf compares what a spec needs, whose context widths are known, of n devices with a device. written is
// the update.recompute that a person wrote, and sized the spec as the start of a run completes it
// for another limits.device_gb.
func cardOf(t spec.Train, shape cost.Network, n int, card int64, written string, sized func(deviceGB int) spec.Train) *Card {
	d := spec.Derive(t, shape)
	c := &Card{
		Bytes: card, Usable: usable(card), Needs: t.Job(shape).Peak(n), Host: d.HostBytes() + hostBuffers,
		Programs: t.Job(shape).Programs(n),
		Base:     float64(d.Memory.Frozen+d.Memory.Weights) / LoadRate, Snapshot: float64(d.Storage.Snapshot) / LoadRate,
	}
	if c.Fits = c.Needs <= c.Usable; !c.Fits {
		if gb := int(c.Usable >> 30); gb > 0 && sized(gb).Job(shape).Peak(n) <= c.Usable {
			c.Changes = []string{fmt.Sprintf("limits.device_gb: %d, which sets rollout.pass_rows, update.micro_batch and update.recompute", gb)}
		}
		c.Changes = append(c.Changes, changes(t, shape, n, c.Usable, written)...)
	}
	return c
}

// changes lists changes of a spec that make it fit, the mildest first. What changes nothing
// about the algorithm comes before what does. The start of a run decides update.recompute of the
// changed spec anew, unless a person has written it.
func changes(t spec.Train, shape cost.Network, n int, usable int64, written string) []string {
	var out []string
	fitsAs := func(shape cost.Network, edit func(*spec.Train)) bool {
		u := t
		u.Update.Recompute = written
		edit(&u)
		return u.WithRecompute(shape).Job(shape).Peak(n) <= usable
	}
	fits := func(edit func(*spec.Train)) bool { return fitsAs(shape, edit) }
	again := func(u *spec.Train) { u.Update.Recompute = spec.RecomputeAlways }
	if t.Update.Keeps() && fits(again) {
		out = append(out, fmt.Sprintf("update.recompute: %q", spec.RecomputeAlways))
	}
	for b := t.Update.MicroBatch / 2; b >= 1; b /= 2 {
		if fits(func(u *spec.Train) { u.Update.MicroBatch = b }) {
			out = append(out, fmt.Sprintf("update.micro_batch: %d (%d now)", b, t.Update.MicroBatch))
			break
		}
	}
	for r := t.Rollout.Pass() / 2; r >= 1; r /= 2 {
		if fits(func(u *spec.Train) { u.Rollout.PassRows = r }) {
			out = append(out, fmt.Sprintf("rollout.pass_rows: %d (%d now)", r, t.Rollout.Pass()))
			break
		}
	}
	both := func(u *spec.Train) { u.Update.MicroBatch, u.Rollout.PassRows = 1, 1; again(u) }
	if len(out) == 0 && fits(both) {
		out = append(out, fmt.Sprintf("update.micro_batch: 1, rollout.pass_rows: 1 and update.recompute: %q", spec.RecomputeAlways))
	}
	if t.Update.Reference() && fits(func(u *spec.Train) { u.Update.KLIn = spec.KLNone }) {
		out = append(out, `update.kl_in: "none", so that there is no reference`)
	}
	if t.Credit.Second() && fits(func(u *spec.Train) { u.Credit.Algorithm = spec.Default(t.Policy.From).Credit.Algorithm }) {
		out = append(out, fmt.Sprintf("credit.algorithm: %q, which has no second network", spec.Default(t.Policy.From).Credit.Algorithm))
	}
	if t.Teacher.Apart() != nil && fits(func(u *spec.Train) { u.Teacher = nil }) {
		out = append(out, "a smaller teacher (teacher.from)")
	}
	if t.JudgeModel() != nil && fits(func(u *spec.Train) { u.Rewards = nil }) {
		out = append(out, "a smaller judge (the option judge of the reward judge), or one behind an address")
	}
	if t.Teacher.Self() && fits(func(u *spec.Train) { of := *u.Teacher; of.ContextTokens /= 2; u.Teacher = &of }) {
		out = append(out, fmt.Sprintf("teacher.context_tokens: %d (%d now)", t.Teacher.ContextTokens/2, t.Teacher.ContextTokens))
	}
	if t.Policy.LoRA == nil && fits(func(u *spec.Train) { u.Policy.LoRA = spec.DefaultLoRA(t.Policy.From) }) {
		out = append(out, "policy.lora: {}, which trains adapters and no other weights")
	}
	peak := t.Job(shape).Peak(n)
	for _, name := range slices.Backward(families.Names()) {
		smaller, err := families.ByName(name)
		if s := run.ShapeOf(smaller.Config); err == nil && s.Unbiased == shape.Unbiased && s.HeadNorms == shape.HeadNorms &&
			s.Parameters() < shape.Parameters() && fitsAs(s, func(*spec.Train) {}) {
			out = append(out, fmt.Sprintf("a smaller model, such as %s", name))
			break
		}
	}
	return append(out, "a device of "+sizeOfCard(peak))
}

// sizeOfCard is the least memory of a device, in whole GB, on which a run of this peak fits.
func sizeOfCard(peak int64) string {
	gb := (peak + 1e9 - 1) / 1e9
	for usable(gb*1e9) < peak {
		gb++
	}
	return fmt.Sprintf("%d GB", gb)
}

// decimal is a number of bytes in units of 1000, as devices are sold.
func decimal(n int64) string { return humanize.Bytes(uint64(n)) }

// text is the comparison in some lines.
func (c Card) text() string {
	var b strings.Builder
	verdict := "fits"
	if !c.Fits {
		verdict = "does not fit"
	}
	fmt.Fprintf(&b, "\nIt %s a device of %s: it needs %s, and %s may be used.\n", verdict, decimal(c.Bytes), decimal(c.Needs), decimal(c.Usable))
	b.WriteString(programsText(c.Programs))
	fmt.Fprintf(&b, "The host needs %s besides. Loading takes %.0f s from version 0 and %.0f s from a snapshot, at %.0f MB/s.\n",
		decimal(c.Host), c.Base, c.Snapshot, LoadRate/1e6)
	if len(c.Changes) > 0 {
		b.WriteString("Each of these alone makes it fit:\n")
		for _, change := range c.Changes {
			fmt.Fprintf(&b, "  %s\n", change)
		}
	}
	return b.String()
}

// programsText is a table of what programs need.
func programsText(programs []cost.Program) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "program\tinputs\toutputs\tin place\tbesides\tother tensors\tall\t\n")
	for _, p := range programs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", p.Name, decimal(p.Inputs), decimal(p.Outputs), decimal(p.Aliases),
			decimal(p.Temporary), decimal(p.Beside), decimal(p.Peak()))
	}
	// A strings.Builder never fails.
	_ = w.Flush()
	return b.String()
}

// SweepCard says which trials of a sweep fit a device.
type SweepCard struct {
	// Largest is the trial that needs the most, as Card has it.
	Largest  string   `json:"largest_trial"`
	Card     *Card    `json:"card"`
	DoNotFit int      `json:"do_not_fit"`
	notFit   []string // their labels
}

// add counts a trial.
func (s *SweepCard) add(label string, c *Card) {
	if s.Card == nil || c.Needs > s.Card.Needs {
		s.Largest, s.Card = label, c
	}
	if !c.Fits {
		s.DoNotFit++
		s.notFit = append(s.notFit, label)
	}
}

// most is how many trials are named.
const most = 8

func (s SweepCard) text(trials int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe trial that needs the most is %s.%s", s.Largest, s.Card.text())
	if s.DoNotFit > 0 {
		named := slices.Clone(s.notFit[:min(most, len(s.notFit))])
		if more := len(s.notFit) - len(named); more > 0 {
			named = append(named, fmt.Sprintf("and %d more", more))
		}
		fmt.Fprintf(&b, "%d of %d trials do not fit: %s\n", s.DoNotFit, trials, strings.Join(named, ", "))
	}
	return b.String()
}
