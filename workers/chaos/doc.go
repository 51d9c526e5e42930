// Package chaos holds the tests that prove the promise: real worker processes
// are killed in every place, servers too, and the run ends with the same bytes.
//
// The tests start dev stacks of their own, run the built program as worker
// processes, and start runs through the temporal CLI, as a person does. Each test has its
// own namespace and prefix (a lane) on a shared stack, so that tests run side by side. A
// test that kills a server has its own stack. Package workers/faults says where a worker
// dies. It disturbs the preset chaos, with turns of one action; chaos-turns, several
// turns in two environments, of which no finished turn may be repeated; each method's
// preset, made small, in a run that rolls back once, on four virtual devices, one and two in
// turns where the undisturbed run has one; and a sweep.
//
// The tests fail for wrong bytes on any machine. The tests also check how often work was
// done, except if a living worker was taken for dead, as happens on a busy machine.
//
//	go test ./workers/chaos                     # the short form
//	go test ./workers/chaos -run Chaos -full    # every kind × every phase, and
//	                 [-kills 20] [-seed 1]      # kills at random moments
//	                 [-kills 500 -part 1/5]     # those alone, of all presets, a fifth at a time
package chaos
