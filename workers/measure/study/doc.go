// Package study looks at the echo trap of RAGEN (arXiv 2504.20073, section 4.2) on
// the bandit: StarPO with GRPO and with PPO, and StarPO-S, at a high arm that is
// the better choice (p = 0.25) and at one that is not (p = 0.10), with chance drawn
// for each member and, as in RAGEN's code, once for a whole group.
//
// A [Setting] is what is run, with several seeds; a [Record] is what one run was
// like, iteration by iteration, in a file of some kilobytes. Everything else is
// computed from records alone and in one order: the same records give the same
// tables and plots, byte for byte. [FindFall] says when a reward has fallen,
// [Judge] how a run ended, [Summarize] what the seeds of a setting have in common.
package study
