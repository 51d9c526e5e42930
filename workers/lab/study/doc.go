// Package study reproduces the echo trap of RAGEN (arXiv 2504.20073, section 4.2) on
// the bandit: StarPO with GRPO and with PPO, and StarPO-S. The high arm is the better
// choice (p = 0.25) or the worse one (p = 0.10). Chance is drawn for each member or, as
// in RAGEN's code, once for a whole group.
//
// A [Setting] is run with several seeds. A [Record] holds the metrics of one run, in a
// line of some kilobytes of the file [RecordsFile]. Everything else is computed from the
// records in a fixed order, so the same records give the same tables and plots, byte for
// byte. [FindFall] finds where a reward falls, [Judge] classifies how a run ended, and
// [Summarize] aggregates the seeds of a setting.
package study
