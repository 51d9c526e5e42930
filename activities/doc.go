// Package activities is what travels between workflows and their steps: task queues,
// inputs and results, the plan, and the kinds of errors. It does no I/O and computes
// nothing. The steps themselves are in host, device and sweeps, the code they share in
// run, and the table of all steps in steps. A step fetches artifacts, calls the pure
// parts (model, envs, credit, selection), and stores artifacts.
//
// An activity is a pure function of the artifacts its input names (design law
// 1): run twice it writes the same bytes under the same keys. Whatever differs between
// attempts (times, the worker, the contents of its memory) is returned as telemetry and
// never enters an artifact.
//
// Activities are methods of three structs. The activities of host.Host and sweeps.Sweeps
// need no device and run on any host worker. The activities of device.Device need the
// policy and run under a lease on the worker that holds it. Workflows name
// them by the values of package steps; replay and the bench call the same methods
// directly.
package activities

// Task queues. Device workers also serve DeviceQueue(fingerprint).
const (
	// WorkflowQueue carries workflow tasks, and the steps that need no device: the queue a person
	// starts a run on. A worker of both begins a step as soon as it has decided on it (eager
	// execution), which Temporal's SDK has only for activities on the workflow's own queue.
	WorkflowQueue = "reprise"
	// EarlierHostQueue carries such steps if a workflow worker of an earlier build has scheduled them.
	EarlierHostQueue = "reprise-host"
	// AnyDeviceQueue serves the question which fingerprints exist.
	AnyDeviceQueue = "reprise-device"
)

// DeviceQueue is the queue of the SDK's sessions on devices with one fingerprint, which runs of earlier builds have.
func DeviceQueue(fingerprint string) string { return AnyDeviceQueue + "." + fingerprint }

// LeaseQueue is the line of the runs that wait for a device with a fingerprint: first come, first served. A device worker takes
// the first one while its device is free.
func LeaseQueue(fingerprint string) string { return DeviceQueue(fingerprint) + ".line" }

// ComputingQueue is the queue of one process that computes: of the steps of the run that has its device.
func ComputingQueue(process string) string { return "reprise-computes." + process }

// HolderQueue is the queue of one process that gives leases of its device.
func HolderQueue(process string) string { return "reprise-holds." + process }

// HelperQueue is the queue of single blocks of rollouts. The device workers with a fingerprint
// serve it while no run has a session on them.
func HelperQueue(fingerprint string) string { return DeviceQueue(fingerprint) + ".blocks" }
