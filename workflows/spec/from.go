package spec

import "unicode"

// maxRunID is the most bytes of a workflow id that Temporal takes.
const maxRunID = 1000

// checkRun says what is wrong with a run's id.
func checkRun(id string) string {
	if id == "" || len(id) > maxRunID {
		return "it has " + formatNumber(float64(len(id))) + " bytes"
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return "it has a control character"
		}
	}
	return ""
}

// newestBranch means the newest branch and its ancestors.
const newestBranch = -1

// assembleFrom fills in what a From leaves out.
func assembleFrom(t *Train, values map[string]any) {
	if t.From == nil {
		return
	}
	if _, written := values["from.branch"]; !written {
		t.From.Branch = newestBranch
	}
}
