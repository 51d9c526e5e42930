// Package foreign is the protocol for environments that are not part of this program: a
// server in any language answers two calls, EnvDescribe and EnvPlay.
//
// # Two calls
//
// Both are pure functions of their input. The server may cache, but nothing depends on
// it: an episode is named by its options, its instance, its chance and the actions
// played so far, and the server builds it again from these.
//
//	EnvDescribe {"options":{…}}
//	  → {"protocol":1,"version":…,"instructions":…,"actions":[…]|null,"max_actions":…,
//	     "max_actions_per_turn":…,"instances":…,"widest":[…],"replayable":true}
//	EnvPlay {"options":{…},"episodes":[{"instance":…,"chance":…,"played":[…],"chain":…,"next":[…]}…]}
//	  → {"version":…,"episodes":[{"instance":…,"chance":…,"observation":…,"choices":[…]|null,
//	     "steps":[{"action":…,"reward":…,"text":…,"effective":…,"observation":…}…],
//	     "invalid":…,"done":…,"success":…,"chain":…}…]}
//
// An episode's answer may also be {"instance":…,"chance":…,"drift":{"chain":…}} or
// {"instance":…,"chance":…,"error":{"kind":"broken"|"busy","message":…}}.
//
// # The chain
//
// The chain is a fingerprint of an episode so far. It begins as the SHA-256 of the first
// observation, in hexadecimal digits. An action makes it the SHA-256 of the JSON array
// [chain, action, observation, reward, done, success], written without blanks and with
// only those characters escaped that JSON requires. The reward is written as in the answer.
// The caller computes every chain again; an answer with another one is refused. A server
// that replays the actions played and arrives at another chain answers drift.
//
// # Trust
//
// A server is not trusted: answers are bounded and read strictly, and everything that can
// be checked is. Each refusal has a kind; see the errors of this package.
//
// Package stdio reaches a server that is a process, workers/envturn one that is a worker of
// Temporal's, and package openenv an environment of OpenEnv's, which it gives this form. The protocol follows the common form of
// such interfaces (Gymnasium's reset and step) except that no call depends on an earlier one.
package foreign
