package spec

// The algorithms of credit.
const (
	// CreditGRPO is the group-normalised advantage.
	CreditGRPO = "grpo"
	// CreditDrGRPO subtracts the group's mean alone.
	CreditDrGRPO = "dr_grpo"
	// CreditLeaveOneOut subtracts the mean of the group's others (LOOP, RLOO).
	CreditLeaveOneOut = "leave_one_out"
	// CreditReinforcePP whitens discounted returns over the batch (REINFORCE++).
	CreditReinforcePP = "reinforce_pp"
	// CreditReinforcePPBaseline whitens returns less the group's mean.
	CreditReinforcePPBaseline = "reinforce_pp_baseline"
	// CreditGiGPO compares trajectories in their group and turns in equal states.
	CreditGiGPO = "gigpo"
	// CreditGAE estimates advantages with a critic, token by token (PPO).
	CreditGAE = "gae"
	// CreditTurnGAE does so on two levels, turns and the tokens inside them.
	CreditTurnGAE = "turn_gae"
	// CreditStateBaseline subtracts what the initial state has returned before.
	CreditStateBaseline = "state_baseline"
)

var creditAlgorithms = []string{
	CreditGRPO, CreditDrGRPO, CreditLeaveOneOut, CreditReinforcePP, CreditReinforcePPBaseline, CreditGiGPO,
	CreditGAE, CreditTurnGAE, CreditStateBaseline,
}

// Where the distance from the reference counts.
const (
	// KLNone: nowhere.
	KLNone = "none"
	// KLLoss: in the policy's loss.
	KLLoss = "loss"
	// KLReward: in the rewards, before credit.
	KLReward = "reward"
)

// Critic tells whether the algorithm needs a critic: then the run trains one.
func (c Credit) Critic() bool { return c.Algorithm == CreditGAE || c.Algorithm == CreditTurnGAE }

// Compares tells whether the algorithm compares the members of a group.
func (c Credit) Compares() bool {
	switch c.Algorithm {
	case CreditReinforcePP, CreditGAE, CreditTurnGAE, CreditStateBaseline:
		return false
	}
	return true
}

// Reference tells whether the update measures its distance from version 0.
func (u Update) Reference() bool { return u.KLIn == KLLoss || u.KLIn == KLReward }
