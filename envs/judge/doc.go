// Package judge asks language models to judge recorded episodes.
//
// A [Form] is what a spec says of such a judge: the criteria, the scale, the wording and the model. It makes the questions
// about an episode, one for the episode or one for each of its turns, and reads the replies. Both are pure. A [Client] sends
// a question to a server of the chat-completions protocol (POST …/chat/completions), which a worker names.
//
// # The reply
//
// A reply ends with a line for each criterion, in the order of the form, NAME: VALUE, and nothing follows them. A value is
// yes or no, or a decimal number of the scale. What stands before these lines is the judge's reasoning. A reply of any other
// form is not read: [Form.Again] asks once more, at temperature 0, and shows what was wrong.
//
// # Trust
//
// Neither the server nor the model behind it is trusted: what is read of them is bounded, and no error shows the key. What
// the policy wrote stands in the question, so a policy may learn to write to its judge: see docs/rewards.md.
package judge
