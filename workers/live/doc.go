// Package live serves the pages of runs and sweeps while they go: a list of what the namespace has, and for each run and
// sweep the page that `reprise report` writes, made again when there is more to show.
//
//	/                       the list
//	/runs/ID/               a run's or a sweep's page, which follows it
//	/runs/ID/now            the newest version of that page, as JSON
//	/runs/ID/at/VERSION/…   the files of a version
//
// ID is the id as workflows.PageName writes it, percent-encoded. There is no login: the server belongs on a
// loopback address, where it answers requests to loopback names only, so that no page of another site can read from it.
package live
