package activities

import (
	"errors"
)

// Kinds of errors as they appear in a workflow's history. Those in NonRetryable
// end the activity at once: trying again cannot help, or somebody must decide.
const (
	KindSpecInvalid     = "SpecInvalid"       // the spec has problems; all are in the message
	KindSpecDiffers     = "SpecDiffers"       // this run id has another spec already
	KindModelInvalid    = "ModelInvalid"      // the base model's files cannot be used
	KindDivergence      = "Divergence"        // other bytes than the committed ones
	KindArtifactAltered = "ArtifactAltered"   // an artifact is not what its digest says
	KindArtifactMissing = "ArtifactMissing"   // an artifact is gone
	KindStoreRefused    = "StoreRefused"      // the bucket refuses a request as it is: another endpoint, region or server is needed
	KindStoreDenied     = "StoreAccessDenied" // the bucket denies access: keys, rights or a clock must be corrected
	KindNoBucket        = "StoreNoBucket"     // there is no such bucket
	KindStateDiffers    = "StateDiffers"      // a rebuilt state is not the recorded one
	KindProgramsDiffer  = "ProgramsDiffer"    // this build lowers other programs than the run's
	KindNotResident     = "NotResident"       // the worker does not hold this policy: restore it
	KindDraining        = "Draining"          // the worker is about to stop: open another session
	KindInvalid         = "Invalid"           // right bytes that cannot be used: a broken chain, a batch that does not fit
	KindNotFound        = "NotFound"          // no such run or iteration
	KindOutOfMemory     = "OutOfMemory"       // the device has too little memory for the step
	KindEnvironment     = "Environment"       // a foreign environment cannot be used; the message says which, and why
	// KindEnvironmentBroke is a foreign environment that broke in more episodes than the spec allows.
	KindEnvironmentBroke = "EnvironmentBroke"
	KindCasesTooNarrow   = "CasesTooNarrow" // an environment shows wider observations than its Cases
	KindDeviceFailed     = "DeviceFailed"   // the device is gone, poisoned or stuck: its worker ends
	KindDeviceTooSmall   = "DeviceTooSmall" // the device has less memory than the run is made for
	KindNotExact         = "NotExact"       // the sampler's log-probs are not the trainer's on this device, which policy.exact asks for
	KindNotFree          = "NotFree"        // a worker that was asked to help has work of its own
	KindRemoved          = "Removed"        // a person has removed the run, the sweep or the evaluation of this id
)

// NonRetryable are the kinds that no retry can fix.
var NonRetryable = []string{
	KindSpecInvalid, KindSpecDiffers, KindModelInvalid, KindDivergence, KindArtifactAltered,
	KindArtifactMissing, KindStoreRefused, KindStoreDenied, KindNoBucket,
	KindStateDiffers, KindProgramsDiffer, KindNotResident, KindDraining, KindInvalid, KindNotFound,
	KindOutOfMemory, KindDeviceFailed, KindDeviceTooSmall, KindCasesTooNarrow, KindEnvironment, KindEnvironmentBroke, KindNotExact,
	KindNotFree, KindRemoved,
}

// Correctable are those of them after which a step may be done again once a person has corrected the bucket: a run pauses, and
// what cannot pause tries again.
var Correctable = []string{KindStoreDenied, KindNoBucket}

// Sentinel errors of this package; see the kinds of the same names.
var (
	ErrSpecDiffers    = errors.New("another spec has this run id")
	ErrModelInvalid   = errors.New("model cannot be used")
	ErrStateDiffers   = errors.New("rebuilt state differs from the recorded one")
	ErrProgramsDiffer = errors.New("programs differ from the recorded ones")
	ErrNotResident    = errors.New("policy version is not held by this worker")
	ErrDraining       = errors.New("worker is about to stop")
	ErrNotFound       = errors.New("not found")
	ErrOutOfMemory    = errors.New("device is out of memory")
	ErrDeviceFailed   = errors.New("device has failed")
	ErrDeviceTooSmall = errors.New("device has too little memory for the run")
	ErrEnvironment    = errors.New("the environment cannot be used")
	ErrNotExact       = errors.New("the sampler's log-probs are not the trainer's on this device")
	// ErrNotFree is a worker that was asked for a block while it has work of its own: the block goes elsewhere.
	ErrNotFree = errors.New("worker is not free")
	// ErrEnvironmentBroke is a foreign environment that broke in too many episodes. Nothing of the turn is
	// stored, so that a fixed one is asked again.
	ErrEnvironmentBroke = errors.New("the environment must be fixed")
	// ErrNotServed is a foreign environment, a judge or a server of tools that this worker does not serve; another one may.
	ErrNotServed = errors.New("this worker serves nothing of this name")
)
