// Package episodes reads the trajectories of a rollout as a person looks at them: turn by
// turn the board before and after, the sampled tokens with probabilities and advantages,
// the executed actions, and the outcome.
//
// A rollout is an iteration's, or an evaluation's. It reads the tables that a manifest
// names: the trajectories, the step tables of the turns (texts and boards) and the batch
// (advantages). [Rollout.Missing] lists what retention removed, and what is missing or
// damaged; the rest is read all the same. Token ids are the truth: texts are decoded from
// them.
package episodes
