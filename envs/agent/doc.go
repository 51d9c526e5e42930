// Package agent lets an agent that is somebody else's program play the episodes of a run: it calls the policy as chat
// completions (package completions), and each call is a turn.
//
// An agent is a program or an address that a worker's --agent names. It is told of an episode in a line of JSON, or in
// the body of a POST:
//
//	{"protocol":1,"episode":"7","base_url":"http://127.0.0.1:40123/v1","api_key":"sk-…","model":"policy",
//	 "task":{"instance":"842…","chance":"193…","split":"train","suite":"","options":{…}}}
//
// and answers when the episode has ended, in a line of its own or in the body of the response:
//
//	{"episode":"7","reward":1,"success":true,"metrics":{"searches":3}}   or   {"episode":"7","error":"…"}
//
// A program plays many episodes at the same time, and answers in any order. Equal instances are the same task, for all
// members of a group; chance is the member's own, and what an agent draws comes from it: then it calls the same again
// when it is started again. An episode with an error counts as one whose environment broke.
package agent
