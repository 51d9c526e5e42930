// Package dev runs the development stack: a Temporal server with its Web UI
// and an S3 server, as child processes on 127.0.0.1.
//
// Everything is kept in one folder (.reprise/dev): the Temporal database, the
// buckets, the credentials of the S3 server, logs, and stack.json, from which other
// programs in this folder learn where the servers are. A stack that is started again on
// the same folder has the same data. Two stacks on one folder are refused.
//
// The children live in process groups of their own, so that Ctrl-C reaches
// only us and we end them in order; and they die with us, however we die: the
// kernel kills them.
//
// Kill and Restart exist for tests of what survives: a server is killed as by
// kill -9 and comes back on the same port with the same data.
package dev
