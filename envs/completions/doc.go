// Package completions serves OpenAI's chat completions on this machine to agents: programs of somebody else that play
// the episodes of a run. An agent is given an address and a key, and plays the episode of the key by calling
// POST /v1/chat/completions with any client. Each call is a turn.
//
// The package has two parts. The pure one reads requests (ReadRequest), gives each call its address (Address) and writes
// answers (Completion). The Server holds the calls that wait until the worker takes them (Server.Take) and answers them
// (Server.Answer, Server.Fail). It samples nothing, stores nothing and starts no agent.
//
// # What is honoured
//
// Honoured are the fields of which an answer takes account: model (any text: one policy plays), messages, tools,
// tool_choice (none, auto), parallel_tool_calls (true), temperature, max_tokens, max_completion_tokens, stop, n (1),
// stream, stream_options, logprobs and top_logprobs (0). Ignored are three that change no answer: user, metadata, and
// store as false. A field that is null counts as left out. Any other field is refused with status 400 and its name, also
// where its value is OpenAI's default: a client that sets it expects something of it. So is seed, because what is drawn
// for a call follows from the run's seed and the call's address.
//
// # Addresses
//
// A call's address is a digest of what its answer depends on, and of how often the same came before in the episode. It
// does not depend on when the call arrives, so an agent may call in parallel, and any number of calls may be answered
// together. The same calls in any order have the same addresses; those that are equal share theirs out among them.
//
// A call counts as one that came before when a client waits for it or has got its answer. One whose client went away
// without the answer does not, so that a client that tries again gets the answer of its first attempt.
//
// # An agent that is started again
//
// Close the episode, Open it, and hand over the answers that were recorded (Server.Recorded). Calls that equal recorded
// ones are answered at once; the first that differs waits to be taken.
package completions
