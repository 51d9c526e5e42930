// Package chaos holds the tests that prove the promise: real worker processes
// are killed in every place, servers too, and the run ends with the same bytes.
//
// The tests start dev stacks of their own, run the built program as worker
// processes, and start runs through the temporal CLI, as a person does. Each test
// has a namespace and a prefix of its own (a lane) on a shared stack, so that
// they run side by side; what kills a server has a stack of its own. Where a
// worker dies is said by package workers/faults. It disturbs the preset chaos, with turns
// of one action; chaos-turns, several turns in two environments, of which no finished
// turn may be repeated; each method's preset, made small, in a run that rolls back once;
// and a sweep.
//
// The tests fail for wrong bytes on any machine. How often work was done is looked at
// too, but not where a living worker was taken for dead, which a busy machine does.
//
//	go test ./workers/chaos                     # the short form
//	go test ./workers/chaos -run Chaos -full    # every kind × every phase, and
//	                 [-kills 20] [-seed 1]      # kills at random moments
package chaos
