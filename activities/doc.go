// Package activities is what each step of a run does: it fetches artifacts,
// calls the pure parts (model, envs, credit, selection), and stores artifacts.
//
// An activity is a pure function of the artifacts its input names (design law
// 1): run twice it writes the same bytes under the same keys. What differs
// between attempts (times, the worker, what was already in memory) is returned
// as telemetry and never enters an artifact.
//
// Activities are methods of three structs. Host's and Sweeps' need no device and run
// on any host worker; Device's need the policy and run inside a Temporal session on
// the worker that holds it. Workflows name them through nil pointers of these types,
// and the same methods called directly in one process are replay and the bench.
package activities

// Task queues. Device workers also serve DeviceQueue(fingerprint).
const (
	// WorkflowQueue carries workflow tasks: the queue a person starts a run on.
	WorkflowQueue = "reprise"
	// HostQueue carries the steps that need no device.
	HostQueue = "reprise-host"
	// AnyDeviceQueue is asked which fingerprints are there.
	AnyDeviceQueue = "reprise-device"
)

// DeviceQueue is the queue of the sessions on devices with one fingerprint.
func DeviceQueue(fingerprint string) string { return AnyDeviceQueue + "." + fingerprint }
