package credit

import "github.com/reprise-rl/reprise/model/option"

// Algorithm is a way to turn rewards into advantages.
type Algorithm struct {
	// Name is the value of credit.algorithm in a spec.
	Name string
	// Also are names by which other programs call it, in small letters, with _ for -.
	Also []string
	// By completes "rewards become advantages by …".
	By string
	// Formula and Paper describe the algorithm in docs/methods.md; File is the
	// file that has it, below model/methods.
	Formula, Paper, File string
	// Critic says that it reads Input.Values: the run trains a critic.
	Critic bool
	// Values is how many numbers its critic has for each token, which Input.Values has one after the
	// other; 0 is one. Learns and the returns of Compute are then as long.
	Values int
	// BySubgoals says that it reads Input.Subgoals: the policy writes them.
	BySubgoals bool
	// ReadsOpen says whether it reads Input.Open with the options; nil if it never does.
	ReadsOpen func(Options) bool
	// Promises says that the critic is a process reward model: its values are logits of the chance of
	// success, and it learns targets from 0 to 1 with their cross-entropy (terms.Promise).
	Promises bool
	// Preferences gives what it learns from preferences, and says that it reads Input.PRM: the run
	// trains a process reward model. nil if it reads none.
	Preferences func(Input, Options) (Preferences, error)
	// Compares says that it compares the members of a group, so that a group needs
	// two at least.
	Compares bool
	// DropsFlat says that a group of equal returns teaches nothing of the task: its advantages are 0, or
	// of entropies alone (empg). By default a run leaves such groups out.
	DropsFlat bool
	// ObservesStates says that it reads Input.Past: every trajectory of a rollout,
	// selected or not, updates the values of initial states (Observe).
	ObservesStates bool
	// Observe is the algorithm's own way to update Input.Past, of which keys need not be states; nil is the
	// function Observe, by initial states and BaselineRate. agents are those of the trajectories' turns, as Input has
	// them; nil unless ByRole. The result is sorted by key.
	Observe func(past []StateValue, returns []float64, agents [][]string, o Options) ([]StateValue, error)
	// ReadsParts says that it reads Input.Parts, and ReadsEntropies that it reads
	// Input.Entropies.
	ReadsParts, ReadsEntropies bool
	// ReadsSumSquares says that it reads Input.SumSquares, which a run's Score gives only then, and Input.Old.
	ReadsSumSquares bool
	// ReadsCriteria says that it reads Input.Criteria: a reward with criteria by turn.
	ReadsCriteria bool
	// ReadsTeacher says that it reads Input.Teacher and Input.Old: a teacher scores the rows too.
	ReadsTeacher bool
	// Learns returns the tokens whose returns the critic learns, [rows][tokens]; nil if it
	// learns those of all sampled tokens.
	Learns func(Input, Options) [][]bool
	// Alone counts the turns that were compared with no other, so that they teach nothing; nil
	// if the algorithm does not compare turns by what came before.
	Alone func(Input) int
	// ByRole says that it reads Input.Agents: it needs an environment of several roles.
	ByRole bool
	// Search is the value of rollout.search that it needs: it reads Input.Trees and Input.Branches,
	// of a rollout whose trajectories branch so. It is "" if it needs none.
	Search string
	// StepWeight is what its paper calls credit.step_weight, if it reads that.
	StepWeight string
	// Reads are the fields of a spec's section credit that have an effect, of those that every spec
	// has, without algorithm; Own are the fields beside them.
	Reads []string
	Own   []option.Option
	// Compute returns the advantages and what the second network learns: with a critic the returns,
	// with a process reward model the weights of the log-probs; nil without one. [rows][tokens].
	// Errors are of kind ErrRewards, ErrNotFinite or ErrInput.
	Compute func(Input, Options) (advantages, returns [][]float64, err error)
}

// Input is what algorithms read of the rows of an update.
type Input struct {
	Returns []float64   // [rows], penalties included
	Rewards [][]float64 // [rows][turns], the same by turns
	Tokens  [][]float64 // [rows][tokens], the same at sampled tokens
	Values  [][]float64 // [rows][tokens], the critic's; nil without one
	PRM     [][]float64 // [rows][tokens], the log-probs of the process reward model; nil without one
	Old     [][]float64 // [rows][tokens], the log-probs of the policy that Score saw
	// Teacher are the log-probs of the teacher, [rows][tokens]; nil unless ReadsTeacher.
	Teacher [][]float64
	// Informed says of each row, [rows], whether its teacher knows more than the policy: one that is the policy itself was shown
	// something. Elsewhere Teacher is Old. nil unless ReadsTeacher.
	Informed []bool
	// SumSquares are Σπ² of the distributions that the tokens were sampled from, [rows][tokens]; nil unless ReadsSumSquares.
	SumSquares [][]float64

	Groups  []int      // [rows], the group of each
	Keys    [][]string // [rows][turns], the state when each turn began
	Actions [][]string // [rows][turns], what each turn did, without its reasoning
	Agents  [][]string // [rows][turns], the role whose turn it was; nil unless ByRole
	Trees   []int      // [rows], the tree of each, told apart within a group only
	Starts  []string   // [rows], the initial state

	Successes []bool // [rows], which succeeded

	Subgoals [][]Subgoal // [rows][turns], what the turns say of their subgoals; nil unless BySubgoals
	Invalid  [][]bool    // [rows][turns], the turns without a legal action, or without a switch and a subgoal
	Open     []bool      // [rows], which a limit ended and the environment did not; nil unless ReadsOpen

	Branches []bool // [rows], which begin in the middle of another row of their tree

	Turns   [][]Span     // [rows][turns], the sampled tokens
	Lengths []int        // [rows], in tokens
	Mask    [][]bool     // [rows][tokens], true at the sampled ones
	Past    []StateValue // the values of initial states before this rollout

	Parts       [][]float64 // [rows][parts], the returns of the reward's parts, without their weights
	PartWeights []float64   // [parts]
	Entropies   [][]float64 // [rows][turns], the mean over the turn's sampled tokens, in nats

	Criteria        [][][]bool // [rows][turns][criteria], which hold at the turn alone; nil unless ReadsCriteria
	CriteriaWeights []float64  // [criteria]
	CriteriaAfter   []int      // [criteria], the criterion before it that each depends on, −1 for none
}

// Options are the knobs of all algorithms, as the section credit of a spec has them. An
// algorithm ignores those that it does not name in Reads.
type Options struct {
	// Algorithm is the name of an algorithm; only methods.Compute reads it.
	Algorithm string
	// NormalizeByStd divides by the standard deviation of the group (GRPO, and in GiGPO
	// of the anchor group too). Without it only the mean is subtracted: in GRPO that is
	// DrGRPO, in GiGPO it is F = 1, which the paper finds better for very small standard
	// deviations.
	NormalizeByStd bool
	// Epsilon is added to the standard deviation (verl, verl-agent: 1e-6).
	Epsilon float64
	// Floor is the smallest divisor, in units of the reward; 0 means no floor, as in the
	// papers. Without a floor the advantage depends on how rare a difference is and not
	// on its size: if one of 16 members has another reward, its |A| is 15/√16 = 3.75
	// even if the difference is a penalty of 0.1 or a random payout. The floor has no
	// effect on groups with a larger standard deviation.
	Floor float64
	// Gamma discounts the future, in [0, 1]: from token to token in GAE, TurnGAE (inside
	// a turn) and REINFORCE++ (RAGEN: 1), from turn to turn in GiGPO (paper: 0.95).
	Gamma float64
	// Lambda, in [0, 1], trades the critic's bias (0) against the variance of the
	// returns (1) over tokens (RAGEN: 1).
	Lambda float64
	// TurnGamma discounts from turn to turn in TurnGAE, in [0, 1] (RAGEN's
	// high_level_gamma: 0.95).
	TurnGamma float64
	// TurnLambda is the λ of the turns in TurnGAE, in [0, 1] (RAGEN uses Lambda: 1).
	TurnLambda float64
	// ValueAt is where TurnGAE reads a turn's value; empty means LastPromptToken.
	ValueAt ValuePlace
	// RewardAt is where Input.Tokens has the rewards; the caller puts them there.
	RewardAt RewardPlace
	// Whiten scales the advantages of all sampled tokens to mean 0 and standard deviation
	// 1 (GAE, TurnGAE; verl and RAGEN always do).
	Whiten bool
	// BaselineRate is Observe's rate; the caller of StateBaseline observes.
	BaselineRate float64
	// StepWeight is the weight of the advantages of single turns (papers: 1).
	StepWeight float64
	// Own are the values of the algorithms' own options.
	Own option.Values
}

// ByRow is the result of an algorithm that gives all tokens of a row one advantage.
func (in Input) ByRow(rows []float64, err error) (advantages, returns [][]float64, _ error) {
	if err == nil {
		advantages, err = OverRows(rows, in.Mask)
	}
	return advantages, nil, err
}

// ByTurn is the result of an algorithm that gives all tokens of a turn one advantage.
func (in Input) ByTurn(turns [][]float64, err error) (advantages, returns [][]float64, _ error) {
	if err == nil {
		advantages, err = OverTurns(turns, in.Turns, in.Lengths)
	}
	return advantages, nil, err
}

// ByToken is the result of an algorithm over tokens without a critic.
func ByToken(advantages [][]float64, err error) (_, returns [][]float64, _ error) {
	return advantages, nil, err
}

// Preferences are what trajectories say of a process reward model, and what it learns from them.
type Preferences struct {
	// Rewards are the step rewards, [rows][turns].
	Rewards [][]float64
	// Pairs are the pairs of a success and a failure of one group, and Loss is their mean loss
	// (loss.Preference). Right is the share of pairs in which the model prefers the success; 0
	// without pairs.
	Pairs [][2]int
	Loss  float64
	Right float64
	// Weights, [rows][tokens], are −∂Loss/∂log π_φ at each sampled token: a step of gradient ascent on
	// Σ weight·log π_φ is one of gradient descent on the loss.
	Weights [][]float64
}

// CodeForm is an option of several algorithms, which say what it means in theirs.
func CodeForm(note string) option.Option {
	return option.Option{
		Section: option.Credit, Name: "code_form", Switch: true, Source: "the papers; their code: true",
		Doc: "Takes the forms of the authors' code where they differ from the paper (%s).", Note: note,
	}
}

// Fields are the fields of a spec's section credit that have an effect, without algorithm.
func (a Algorithm) Fields() []string {
	out := a.Reads[:len(a.Reads):len(a.Reads)]
	for _, o := range a.Own {
		out = append(out, o.Name)
	}
	return out
}
