// Package study reproduces the echo trap of RAGEN (arXiv 2504.20073, section 4.2) on
// the bandit: StarPO with GRPO and with PPO, and StarPO-S, at a high arm that is
// the better choice (p = 0.25) and at one that is not (p = 0.10), with chance drawn
// for each member and, as in RAGEN's code, once for a whole group.
//
// A [Setting] is run with several seeds. A [Record] holds the metrics of one run, in a
// line of some kilobytes of the file [RecordsFile]. Everything else is computed from the
// records in a fixed order, so the same records give the same tables and plots, byte for
// byte. [FindFall] finds where a reward falls, [Judge] classifies how a run ended, and
// [Summarize] aggregates the seeds of a setting.
package study
