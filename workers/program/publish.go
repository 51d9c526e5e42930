package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/hub"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// cardName is the model card's file, as the Hugging Face hub shows it.
const cardName = "README.md"

// cardMark is in each card that publish wrote, so that it is replaced and no other file is.
const cardMark = "<!-- written by reprise publish -->"

// cardRows bounds the rows of the card's curve, beside the newest.
const cardRows = 20

func publishCommand() *cobra.Command {
	var conn stack.Connection
	var options model.DeviceOptions
	var o exportOptions
	var up hub.Upload
	iteration := -1
	cmd := &cobra.Command{
		Use:   "publish RUN --out DIR|hf:ORG/NAME",
		Short: "write the policy with a model card, as a folder or to the Hugging Face hub",
		Long: `Writes the policy as "reprise export" does, and README.md beside it: the run's
settings, its learning curve, the digest of the manifest that made the weights, and the
commands that check them. Written twice, the folder is the same. A run with policy.lora
has its adapters added to the weights.

--out hf:ORG/NAME uploads the folder to the hub instead, as one commit; ORG may be a
user. HF_TOKEN is an access token that may write there, and HF_ENDPOINT another hub. The
repository is made if there is none, and so is the branch. What the hub has is not sent
again: publish again after a failure. A card that publish did not write is not replaced,
and weights of an earlier version under other names are removed.`,
		Example: `  reprise publish bandit-1 --out bandit-1-hf
  reprise publish bandit-1 --iteration 29 --out bandit-1-hf
  HF_TOKEN=hf_… reprise publish bandit-1 --out hf:me/bandit-1 --private
  HF_TOKEN=hf_… reprise publish bandit-1 --iteration 9 --out hf:me/bandit-1 --revision iteration-9`,
		Args: oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.dir == "" {
				return errors.New("publish: --out says where to: a folder, or hf:ORG/NAME at the Hugging Face hub")
			}
			repo, toHub := strings.CutPrefix(o.dir, "hf:")
			if !toHub && (up.Private || up.Revision != "") {
				return errors.New("publish: --private and --revision are for --out hf:ORG/NAME")
			}
			var at hub.Hub
			if toHub {
				var err error
				if at, err = hub.FromEnv(); err != nil {
					return err
				}
				up.Repo = repo
				if err := at.CheckUpload(up); err != nil {
					return fmt.Errorf("publish to %s: %w", o.dir, err)
				}
			}
			s, err := storeOf(cmd.Context(), &conn, args[0], false)
			if err != nil {
				return err
			}
			o.run, o.version = args[0], iteration+1
			open := func() (*model.Device, error) { return model.OpenDevice(options) }
			if toHub {
				return publishToHub(cmd.Context(), s, o, open, at, up, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return publish(cmd.Context(), s, o, open, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&up.Revision, "revision", "", "with hf: the branch, made from main if there is none (default: main)")
	f.BoolVar(&up.Private, "private", false, "with hf: make a new repository private; one that is public is refused")
	f.IntVar(&iteration, "iteration", -1, "the iteration, counted from 0, whose policy is written (default: the newest)")
	f.StringVarP(&o.dir, "out", "o", "", "a folder, new or empty or published before, or hf:ORG/NAME")
	stack.AddDeviceFlags(f, &options, ", as the run's worker had them")
	conn.AddStoreFlags(f)
	return cmd
}

// publish exports a version, the newest if it is 0, and writes its card.
func publish(ctx context.Context, s store.Store, o exportOptions, open func() (*model.Device, error), out, progress io.Writer) error {
	head, err := store.Head(ctx, s, o.run)
	if err != nil {
		return fmt.Errorf("%w%s", err, adviceOn(err, o.run))
	}
	o.version = cmp.Or(o.version, head.Manifest.Version())
	settings, err := store.GetArtifact(ctx, s, head.Manifest.Spec)
	if err != nil {
		return fmt.Errorf("settings of run %q: %w", o.run, err)
	}
	links, err := iterations.Load(ctx, s, o.run)
	if err != nil {
		return fmt.Errorf("%w%s", err, adviceOn(err, o.run))
	}
	table, err := iterations.From(links)
	if err != nil {
		return fmt.Errorf("table of run %q: %w%s", o.run, err, adviceOn(err, o.run))
	}
	var t spec.Train
	if err := json.Unmarshal(settings, &t); err != nil {
		return fmt.Errorf("settings of run %q: %w", o.run, err)
	}
	text, err := card(o.run, o.version, cmp.Or(t.Policy.Base, t.Policy.From), settings, table)
	if err != nil {
		return err
	}
	if o.merge = t.Policy.LoRA != nil; o.merge {
		o.dtype = "float32"
	}
	path := filepath.Join(o.dir, cardName)
	have, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Contains(have, []byte(cardMark)):
		if err := os.Remove(path); err != nil { // export takes only its own files for its own
			return fmt.Errorf("replace the model card: %w", err)
		}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for a model card: %w", err)
	}
	if err := exportPolicy(ctx, s, o, open, out, progress); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("write the model card: %w", err)
	}
	return nil
}

// card is the text of a version's model card. The same run and version have the same card. from is
// the base model's origin, which the hub shows if it is a model there.
func card(run string, version int, from string, settings []byte, t iterations.Table) ([]byte, error) {
	at := map[string]int{}
	for i, c := range t.Columns {
		at[c.Name] = i
	}
	var kept [][]any
	for _, row := range t.Rows {
		abandoned, _ := row[at["abandoned"]].(bool)
		n, _ := row[at["iteration"]].(int64)
		if !abandoned && n < int64(version) {
			kept = append(kept, row)
		}
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, settings, "", "  "); err != nil {
		return nil, fmt.Errorf("settings of run %q: %w", run, err)
	}
	var b strings.Builder
	b.WriteString("---\nlibrary_name: transformers\n")
	if base, ok := strings.CutPrefix(from, "hf:"); ok {
		base, _, _ = strings.Cut(base, "@")
		fmt.Fprintf(&b, "base_model: %q\n", base)
	}
	fmt.Fprintf(&b, "tags: [reinforcement-learning, reprise]\n---\n%s\n", cardMark)
	fmt.Fprintf(&b, "# %s, version %d\n\nA policy that Reprise trained in %s.\n\n", run, version, human.Plural(version, "iteration"))
	if len(kept) > 0 {
		newest := kept[len(kept)-1]
		fmt.Fprintf(&b, "## Where it comes from\n\nThe manifest that made these weights has the SHA-256 `%s`,\n", newest[at["manifest"]])
		fmt.Fprintf(&b, "and the state after it is `%s`. Each manifest names the one before it by digest.\n", newest[at["state_after"]])
		fmt.Fprintf(&b, "Whoever has the run's bucket checks all artifacts, and computes an iteration again:\n\n")
		word := human.ShellWord(run)
		fmt.Fprintf(&b, "    reprise verify %s\n    reprise replay %s --iteration %d\n\n## Learning curve\n\n", word, word, version-1)
		curveTable(&b, t, at, kept)
	}
	fmt.Fprintf(&b, "\n## Settings\n\n```json\n%s\n```\n", strings.TrimSpace(pretty.String()))
	return []byte(b.String()), nil
}

// curveTable writes at most cardRows rows, evenly apart, and the newest row.
func curveTable(b *strings.Builder, t iterations.Table, at map[string]int, rows [][]any) {
	var shown []int
	for _, name := range []string{"reward/mean", "success/mean"} {
		if i, ok := at[name]; ok {
			shown = append(shown, i)
		}
	}
	b.WriteString("| iteration |")
	for _, i := range shown {
		fmt.Fprintf(b, " %s |", t.Columns[i].Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(shown)) + "\n")
	apart := (len(rows) + cardRows - 1) / cardRows
	for n, row := range rows {
		if n%apart != 0 && n != len(rows)-1 {
			continue
		}
		fmt.Fprintf(b, "| %d |", row[at["iteration"]])
		for _, i := range shown {
			cell := ""
			if v, ok := row[i].(float64); ok {
				cell = strconv.FormatFloat(v, 'g', 4, 64)
			}
			fmt.Fprintf(b, " %s |", cell)
		}
		b.WriteString("\n")
	}
}
