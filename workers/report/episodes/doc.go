// Package episodes reads the trajectories of a rollout as a person looks at them:
// turn by turn the board before and after, what was sampled, token by token with
// its probability and its advantage, what was done, and what came of it.
//
// A rollout is an iteration's, or an evaluation's. Its tables are those that a
// manifest names: the trajectories, the step tables of its turns (texts and
// boards) and the batch (advantages). [Rollout.Missing] lists what retention removed, and
// what is missing or damaged; the rest is read all the same. Token ids are the truth:
// texts are decoded from them.
package episodes
