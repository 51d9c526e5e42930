package workflows

import "github.com/reprise-rl/reprise/activities"

// Kind is a kind of failure as people meet it: in a run's history, in `reprise status` and on docs/troubleshooting.md, which is
// written from [Kinds].
type Kind struct {
	// Name is the type of the error in Temporal's history.
	Name string
	// Cause is what has happened, Then what the run does about it by itself, and Remedy what a person can do, each in a sentence or
	// two; Remedy is "" where there is nothing to do.
	Cause, Then, Remedy string
}

// What runs do about failures.
const (
	ends      = "The run ends with the error; nothing that is committed changes."
	elsewhere = "The run goes on at another device, or at the worker's next process, from its last snapshot and its recorded updates; " +
		"a step that fails `limits.step_failures` times in a row pauses it."
	pauses        = "The run pauses; nothing of the step is stored, and it is done again after the update `resume`."
	passes        = "The run goes on at another device. This is no failure."
	tried         = "The activity is tried four times; then the run ends."
	triedThenDone = "The activity is tried four times; then an iteration that is not committed is done again, once; then the run ends."
	askedAgain    = "The call is made again; then the run pauses (`Environment`)."
)

// Kinds are the kinds of failures, by where they come from.
var Kinds = []struct {
	Of    string
	Kinds []Kind
}{
	{"The spec and the model", []Kind{
		{activities.KindSpecInvalid, "The spec has problems; the message lists all of them, each with its path.", ends,
			"Correct the spec: `reprise validate FILE` says the same before anything is started."},
		{activities.KindSpecDiffers, "A run of this id was started with another spec.", ends, "Choose another workflow id, or give the spec that the run has."},
		{activities.KindModelInvalid, "The base model's files cannot be used: the message names the file and what is wrong or not supported.", ends,
			"See [models](models.md) for what is supported; `reprise policy encode --model DIR` reads a folder without a run."},
		{activities.KindNotFound, "There is no such run, iteration or version.", ends, "Check the id and the number: `reprise runs` lists runs, `reprise status` says how far one is."},
		{activities.KindRemoved, "A person has removed what has this id from the bucket.", ends, "Choose another id: an id that was removed is not used again."},
		{activities.KindCasesTooNarrow, "An environment showed a wider observation than it said it would.", ends,
			"Correct what the environment says of its widest observation, and start again; `reprise env check` finds this."},
	}},
	{"Devices and workers", []Kind{
		{kindSessionLost, "The worker that held the run's device is gone, or was silent for too long.", elsewhere, seeLogs},
		{kindWorkerLost, "The process that computes has ended; the message has its exit code or signal.", elsewhere, seeLogs},
		{kindDrained, "The worker stops, after a signal or a cloud's notice.", passes, ""},
		{activities.KindDraining, "The worker is about to stop and takes no step.", passes, ""},
		{activities.KindNotResident, "The worker does not hold the run's weights.", "They are restored there, or at another device. This is no failure.", ""},
		{kindTimedOut, "A step ran longer than its time limit, which follows from `limits.activity_seconds`.", elsewhere,
			"Use a faster device, or fork the run (`from`) with a larger limits.activity_seconds."},
		{activities.KindOutOfMemory, "The device had too little memory for a step.", "The step is tried once more by a new process; then the run pauses.",
			"Free memory on the device, or serve its fingerprint by one that has more; `reprise validate` counts what the spec needs."},
		{activities.KindDeviceTooSmall, "The device has less memory than the run is made for.",
			"The run waits for a device with more memory, longer each time; after `limits.step_failures` devices it pauses.",
			"Serve its fingerprint by a device with more memory, or fork the run (`from`) with a smaller limits.device_gb."},
		{activities.KindDeviceFailed, "The device is gone, stuck or not to be trusted; the worker's process has ended.", elsewhere, seeLogs},
		{activities.KindNotExact, "On this device the sampler's log-probs are not the trainer's, which `policy.exact` asks for.", "The run pauses.",
			"Serve its fingerprint by another device, or start another run with policy.exact false; `reprise doctor` says what differs."},
		{activities.KindProgramsDiffer, "This build makes other programs than those that the run was begun with.",
			"The run waits for a worker with the run's programs; an evaluation ends.",
			"Start a worker of the build that began the run, or adopt the present programs (update `adopt-programs`)."},
		{activities.KindNotFree, "A worker that was asked to help has work of its own.", "The work is done elsewhere. This is no failure.", ""},
	}},
	{"The bucket", []Kind{
		{activities.KindStoreDenied, "The bucket denies access: keys, rights or a clock.", "Tried for a minute; then the run pauses.",
			"Correct what the message says (the workers' keys, their rights on the bucket, a clock); `reprise doctor` names the cause."},
		{activities.KindNoBucket, "There is no such bucket.", "Tried for a minute; then the run pauses.",
			"Make the bucket, or start the workers with the name of the one that has the run; `reprise doctor` asks for it."},
		{activities.KindStoreRefused, "The server refuses a request as it is: another endpoint, region or server is needed.", tried,
			"Run `reprise doctor` with the worker's settings: it tries each kind of request."},
		{activities.KindArtifactAltered, "An object is not what its digest says: damaged, cut, or changed by somebody.", triedThenDone,
			"Restore the object from a backup or an older version; `reprise verify` lists every object that is damaged."},
		{activities.KindArtifactMissing, "An object that a manifest names is gone.", triedThenDone,
			"Restore the object from a backup or an older version; `reprise verify` lists what is missing."},
		{activities.KindInvalid, "Objects are intact but do not fit together: a broken chain, a batch of other shapes.", tried,
			"See the message; `reprise verify` shows where the chain breaks."},
		{activities.KindDivergence, "A step gave other bytes than those committed.", ends,
			"Keep the bucket as it is, and compare by `reprise replay`: the message names both digests. A device that does not repeat its bits is the usual cause."},
		{activities.KindStateDiffers, "The state that was computed again is not the recorded one.", ends,
			"Keep the bucket as it is, and compare by `reprise replay`. A device that does not repeat its bits is the usual cause."},
	}},
	{"Environments, tools, judges and agents", []Kind{
		{activities.KindEnvironment, "An environment, a judge, a server of tools or an agent cannot be used; the message says which, and why.", pauses, correctIt},
		{activities.KindEnvironmentBroke, "An environment broke in more episodes than the spec allows.", pauses, correctIt},
		{KindEnvBusy, "An environment's activity asked to be called later until the time was over.", askedAgain, "Start more of its workers."},
		{KindEnvBroken, "An environment's activity raised an error.", "The episode ends as broken; more than the spec allows pause the run (`EnvironmentBroke`).", "See the log of the environment's worker."},
		{KindEnvTimeout, "An environment's activity did not answer in time.", askedAgain, "See the log of the environment's worker."},
		{KindEnvAbsent, "No worker took the call of an environment's activity.", askedAgain, "Start a worker for the environment's task queue."},
		{KindEnvFlood, "An environment's answer does not fit into a payload.", pauses, "Let the environment answer less."},
		{KindEnvAnswer, "An environment's answer is not JSON.", pauses, "Correct the environment; `reprise env check` shows what it answers."},
	}},
	{"Sweeps", []Kind{
		{KindTrialFailed, "A trial of the sweep failed, and `on_failure` ends the sweep.", "The sweep ends; its trials keep what they have.", "See the trial's own error in `reprise status`."},
	}},
}

const (
	correctIt = "Correct what the message names (an environment, a judge, a server of tools, an agent) without a change of its rules: " +
		"nothing of the turn was stored, and it is asked again."
	seeLogs = "See the logs of the device workers, and replace the device or the worker that fails."
)

// remedyOf is what a person can do about a kind of failure that has paused a run.
func remedyOf(name string) string {
	for _, part := range Kinds {
		for _, k := range part.Kinds {
			if k.Name == name && k.Remedy != "" {
				return k.Remedy
			}
		}
	}
	return seeLogs
}
