package program

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/toolservers"
)

func envPlayCommand() *cobra.Command {
	var f envFlags
	var actions string
	cmd := &cobra.Command{
		Use:   "play",
		Short: "play an episode, as JSON lines or in the terminal",
		Long: `Prints an episode as JSON lines: first the beginning, then a line for each action.
An action that is not legal in the state gives a line too ("valid": false) and
changes nothing. Actions after the end of the episode are ignored.

Without --actions you play in the terminal; if standard input is not a terminal, it
is read, one action a line. This is the environment alone: format penalties and
limits of actions are not applied. Programs, which are the actions of code, are read one
a line too, and run in a process of their own.`,
		Example: `  reprise env play --env sokoban --seed 7 --actions "Up,Right"
  reprise env play --env frozenlake --options '{"size":8,"slippery":false}'
  reprise env play --env code --actions "def f(x): return x + 3"`,
		Args: command.None,
		RunE: func(cmd *cobra.Command, _ []string) error {
			episode, err := f.episode()
			if err != nil {
				return err
			}
			in, out := cmd.InOrStdin(), cmd.OutOrStdout()
			if _, graded := episode.(envs.Graded); graded {
				if cmd.Flags().Changed("actions") {
					in = strings.NewReader(actions)
				}
				return playGraded(cmd.Context(), in, out, episode)
			}
			switch {
			case cmd.Flags().Changed("actions"):
				return playActions(out, cmd.ErrOrStderr(), episode, splitActions(actions))
			case human.Terminal(in) != nil && human.Terminal(out) != nil:
				return playInTerminal(in, out, episode)
			}
			return playLines(in, out, episode)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&actions, "actions", "", `the actions, as in "Up,Right"`)
	return cmd
}

// splitActions splits at commas and drops empty parts.
func splitActions(s string) []string {
	var actions []string
	for _, action := range strings.Split(s, ",") {
		if action = strings.TrimSpace(action); action != "" {
			actions = append(actions, action)
		}
	}
	return actions
}

// beginning is the first line printed for an episode.
type beginning struct {
	Step        int      `json:"step"`
	Grid        []string `json:"grid,omitempty"` // where the environment has one
	Observation string   `json:"observation"`
}

// played is the line printed for an action.
type played struct {
	Step      int      `json:"step"`
	Action    string   `json:"action"`
	Grid      []string `json:"grid,omitempty"`
	Reward    float64  `json:"reward"`
	Done      bool     `json:"done"`
	Effective bool     `json:"effective"`
	Valid     bool     `json:"valid"`
	Success   bool     `json:"success"`
	Text      string   `json:"text,omitempty"` // where the environment answers in words
	// Observation is what the next turn would show, where the environment has no grid.
	Observation string `json:"observation,omitempty"`
}

// table is an episode with a counter of actions.
type table struct {
	episode envs.Episode
	step    int
}

func (t *table) grid() []string {
	if g, ok := t.episode.(envs.Gridded); ok {
		return g.Grid()
	}
	return nil
}

func (t *table) begin() beginning {
	return beginning{Grid: t.grid(), Observation: t.episode.Observation()}
}

// play takes an action. If the state does not have it, the result is not Valid.
func (t *table) play(action string) played {
	t.step++
	p := played{Step: t.step, Action: action, Done: t.episode.Done(), Success: t.episode.Success()}
	if canonical, ok := t.episode.Legal(action); ok {
		o := t.episode.Step(canonical)
		p.Action, p.Valid = canonical, true
		p.Reward, p.Done, p.Effective, p.Success, p.Text = o.Reward, o.Done, o.Effective, o.Success, o.Text
	}
	if p.Grid = t.grid(); p.Grid == nil && !p.Done {
		p.Observation = t.episode.Observation()
	}
	return p
}

// playActions plays the given actions and prints the episode.
func playActions(out, errOut io.Writer, episode envs.Episode, actions []string) error {
	t := table{episode: episode}
	if err := printJSON(out, t.begin()); err != nil {
		return err
	}
	for k, action := range actions {
		if episode.Done() {
			fmt.Fprintf(errOut, "reprise: the episode ended with action %d; %d more were not taken\n", k, len(actions)-k)
			return nil
		}
		if err := printJSON(out, t.play(action)); err != nil {
			return err
		}
	}
	return nil
}

// playLines plays actions read from in, one per line, until the episode or the input ends.
func playLines(in io.Reader, out io.Writer, episode envs.Episode) error {
	t := table{episode: episode}
	if err := printJSON(out, t.begin()); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for !episode.Done() && lines.Scan() {
		action := strings.TrimSpace(lines.Text())
		if action == "" {
			continue
		}
		if err := printJSON(out, t.play(action)); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read actions: %w", err)
	}
	return nil
}

// graded is an episode whose questions about actions are answered as a worker answers them.
type graded struct {
	envs.Episode
	ask func(envs.ToolQuestion) (envs.ToolAnswer, error)
	err error // the first
}

// Legal implements envs.Episode: it asks about the action.
func (g *graded) Legal(action string) (string, bool) {
	episode := g.Episode.(envs.Graded)
	q, ok := episode.Question(action)
	if !ok || g.err != nil {
		return "", false
	}
	answer, err := g.ask(q)
	if err != nil {
		g.err = err
		return "", false
	}
	return episode.WithAnswer(action, answer), true
}

// playGraded is playLines of an episode that is envs.Graded.
func playGraded(ctx context.Context, in io.Reader, out io.Writer, episode envs.Episode) error {
	servers, err := toolservers.Open(toolservers.Flags{})
	if err != nil {
		return err
	}
	defer servers.Close()
	g := &graded{Episode: episode, ask: func(q envs.ToolQuestion) (envs.ToolAnswer, error) {
		asker := servers.Askers()[q.Kind]
		if asker == nil {
			return envs.ToolAnswer{}, fmt.Errorf("nothing here answers questions of the kind %s", q.Kind)
		}
		return asker.Ask(ctx, host.ToolAsked{ToolQuestion: q})
	}}
	if err := playLines(in, out, g); err != nil {
		return err
	}
	if g.err != nil {
		return fmt.Errorf("ask about an action: %w", g.err)
	}
	return nil
}

// playInTerminal is interactive: it accepts several actions per line, by name or prefix.
func playInTerminal(in io.Reader, out io.Writer, episode envs.Episode) error {
	t := table{episode: episode}
	total := 0.0
	fmt.Fprintf(out, "%s\n\n", episode.Observation())
	lines := bufio.NewScanner(in)
	for !episode.Done() {
		fmt.Fprintf(out, "%s (or the beginning; q to leave): ", strings.Join(episode.Choices(), ", "))
		if !lines.Scan() {
			fmt.Fprintln(out)
			break
		}
		for _, word := range strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
			if strings.EqualFold(word, "q") {
				return nil
			}
			if episode.Done() {
				break
			}
			p := t.play(complete(episode.Choices(), word))
			if !p.Valid {
				t.step--
				fmt.Fprintf(out, "%q is none of them\n", word)
				continue
			}
			total += p.Reward
			fmt.Fprintf(out, "\n%s\n%s: %s", episode.Observation(), p.Action, envs.FormatReward(p.Reward))
			if !p.Effective {
				fmt.Fprint(out, ", nothing changed")
			}
			if p.Text != "" {
				fmt.Fprintf(out, ", %s", p.Text)
			}
			fmt.Fprintln(out)
		}
	}
	if episode.Done() {
		verdict := "not solved"
		if episode.Success() {
			verdict = "solved"
		}
		fmt.Fprintf(out, "\n%s after %d actions, reward %s\n", verdict, t.step, envs.FormatReward(total))
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read actions: %w", err)
	}
	return nil
}

// complete returns the only name with the prefix word, or word itself.
func complete(names []string, word string) string {
	found := ""
	for _, name := range names {
		if len(name) >= len(word) && strings.EqualFold(name[:len(word)], word) {
			if found != "" {
				return word
			}
			found = name
		}
	}
	if found == "" {
		return word
	}
	return found
}
