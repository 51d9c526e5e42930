package program

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
)

func envPromptsCommand() *cobra.Command {
	var f envFlags
	var p envs.Protocol
	var wording string
	var maxNewTokens int
	cmd := &cobra.Command{
		Use:   "prompts --env NAME [REPLY ...]",
		Short: "print the messages that a policy sees, in a protocol's wording",
		Long: `Prints the messages of an episode's turns as a run with this rollout.protocol writes
them, before the model's chat template. Each REPLY is the answer of one turn, its actions
separated by ||. Without a REPLY the first turn is answered with its first legal action,
so that the message of a later turn is shown too.

With --protocol file:PATH the file's templates are checked as at the start of a run.`,
		Example: `  reprise env prompts --env frozenlake
  reprise env prompts --env frozenlake --protocol ragen Down "Right || Right"
  reprise env prompts --env frozenlake --protocol examples
  reprise env prompts --env frozenlake --protocol ` + strings.Join(envs.Wordings(envs.AsksSubgoals), ", ") + ` --subgoals
  reprise env prompts --env sokoban --protocol file:words.txt --seed 3 --max-new-tokens 100`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, replies []string) error {
			mute := envs.Wordings(envs.MuteOfSubgoals)
			switch {
			case p.Subgoals && (!p.Think || slices.Contains(mute, wording)):
				return fmt.Errorf("--subgoals: a subgoal stands in a thought, and %s do not ask for one: leave --think=false out and choose another --protocol", strings.Join(mute, " and "))
			case slices.Contains(envs.Wordings(envs.AsksSubgoals), wording) && !p.Subgoals:
				return fmt.Errorf("--protocol %s asks for subgoals: add --subgoals", wording)
			case slices.Contains(envs.Wordings(envs.ThoughtAlone), wording) && !p.Think:
				return fmt.Errorf("--protocol %s asks for a thought: leave --think=false out", wording)
			}
			worded, err := inWording(p, wording, maxNewTokens)
			if err != nil {
				return err
			}
			return f.prompts(cmd.OutOrStdout(), worded, replies)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&wording, "protocol", envs.Ours, "the wording, as in rollout.protocol: "+strings.Join(envs.Wordings(envs.AnyWording), ", ")+" or file:PATH")
	cmd.Flags().BoolVar(&p.Think, "think", true, "ask for a thought before the answer, as rollout.think does")
	cmd.Flags().BoolVar(&p.Subgoals, "subgoals", false, "ask for a subgoal in the thought, as rollout.subgoals does")
	cmd.Flags().IntVar(&maxNewTokens, "max-new-tokens", 400, "the length that a wording may ask for, as rollout.max_new_tokens")
	return cmd
}

// inWording is a protocol in a wording that a flag names.
func inWording(p envs.Protocol, wording string, maxNewTokens int) (envs.Protocol, error) {
	if !slices.Contains(envs.Wordings(envs.AnyWording), wording) && !strings.HasPrefix(wording, "file:") {
		return p, fmt.Errorf("--protocol %s: want %s or file:PATH", wording, strings.Join(envs.Wordings(envs.AnyWording), ", "))
	}
	p, problems := p.WithWording(wording, maxNewTokens)
	if err := strict.Problems(problems).Err(); err != nil {
		return p, fmt.Errorf("--protocol %s: %w", wording, err)
	}
	return p, nil
}

// prompts plays the replies and prints the messages before each, and after the last.
func (f *envFlags) prompts(out io.Writer, p envs.Protocol, replies []string) error {
	options, err := f.resolved()
	if err != nil {
		return err
	}
	env, err := envs.New(f.name, options)
	if err != nil {
		return err
	}
	episode := env.Reset(draw.Address{Seed: f.seed, Purpose: draw.Instance}, draw.Address{Seed: f.seed, Purpose: draw.Chance})
	for _, m := range p.First(env, episode) {
		printMessage(out, m.Role, m.Content)
	}
	left := env.MaxActions()
	if len(replies) == 0 {
		if choices := episode.Choices(); left > 1 && len(choices) > 0 {
			replies = choices[:1]
		}
	}
	for i, text := range replies {
		reply := envs.Reply{}
		for _, action := range strings.Split(text, envs.Separator) {
			reply.Actions = append(reply.Actions, strings.TrimSpace(action))
		}
		reply.Actions = reply.Actions[:min(len(reply.Actions), env.MaxActionsPerTurn())]
		answer := "<answer>" + strings.Join(reply.Actions, " "+envs.Separator+" ") + "</answer>"
		if p.Think && p.Subgoals {
			answer = "<think> <switch> SWITCH </switch> <subgoal> … </subgoal> </think>" + answer
		} else if p.Think {
			answer = "<think>…</think>" + answer
		}
		printMessage(out, "assistant", answer)
		turn := p.Play(episode, reply, left)
		if left = turn.ActionsLeft; turn.Ended() {
			fmt.Fprintf(out, "[the episode has ended: reward %s, success %t]\n", envs.FormatReward(turn.Reward), turn.Success)
			return nil
		}
		printMessage(out, "user", p.Next(env, episode, envs.NextTurn{Number: i + 2, Reward: turn.Reward, ActionsLeft: left}))
	}
	fmt.Fprintf(out, "[assistant begins after %s]\n", p.Opening())
	return nil
}

// printMessage prints a message under its role.
func printMessage(out io.Writer, role, content string) {
	fmt.Fprintf(out, "[%s]\n%s\n\n", role, content)
}
