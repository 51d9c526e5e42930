package judge

import "github.com/reprise-rl/reprise/envs/foreign"

// The kinds of errors of a [Client] and of [Form.Questions]. Each is also a kind of package foreign.
var (
	// ErrAnswer is an answer that is not of the protocol's form, or that refuses this client.
	ErrAnswer = foreign.Kind("the judge's answer is not valid", foreign.ErrAnswer)
	// ErrRefused is a question that cannot be asked, or that the server does not take: it is too long, or its text is
	// refused. Other questions may be answered.
	ErrRefused = foreign.Kind("the judge does not take the question", foreign.ErrBroken)
	// ErrBusy is a server that has no room, or that failed, each time it was asked.
	ErrBusy = foreign.Kind("the judge is busy", foreign.ErrBusy)
	// ErrTimeout is a server that did not answer in time.
	ErrTimeout = foreign.Kind("the judge did not answer in time", foreign.ErrTimeout)
	// ErrFlood is an answer that is longer than 1 MiB.
	ErrFlood = foreign.Kind("the judge's answer is too long", foreign.ErrFlood)
	// ErrExited is a server that is not there, or that ended before it answered.
	ErrExited = foreign.Kind("the judge's server is not there", foreign.ErrExited)
)
