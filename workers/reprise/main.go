// Command reprise is the worker and the toolbox for a run's artifacts.
package main

import "github.com/reprise-rl/reprise/workers/program"

func main() { program.Main() }
