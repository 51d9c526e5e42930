package spec

import "flag"

var update = flag.Bool("update", false, "write the expected texts and docs/spec.md anew")

func updating() bool { return *update }
