// Package telemetry exports a worker process's metrics to Prometheus: Temporal's SDK
// metrics under their usual names, and ours, reprise_*.
//
// Our figures come from an interceptor, which reads the result of each activity. Nothing
// of it enters an artifact or a workflow's history, and without a listener none of it
// runs. Counters are of this process, since its start; what an attempt that died with its
// process did is not in them.
//
// Labels are bounded: steps, kinds and parts are fixed words. A run's id is a label
// of the figures of the runs committed last, at most [Options].Runs of them, and of
// the run that holds the device.
//
// Exact figures of iterations are not here but in a run's artifacts: see the packages
// iterations and tfevents below.
package telemetry
