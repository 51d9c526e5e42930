package spec

import (
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

const (
	// ourProtocol is the wording that a spec leaves out.
	ourProtocol = "reprise"
	// protocolAllowed are the wordings of prompts, in words.
	protocolAllowed = `"ragen", "reprise", or "file:" and the path of a file with templates`
)

// checkProtocol checks the form of a wording's name; see Rollout.Protocol.
func checkProtocol(wording string) string {
	for _, kind := range []string{"file:", "text:"} {
		if text, ok := strings.CutPrefix(wording, kind); ok && text != "" {
			return ""
		}
	}
	names := []string{"ragen", ourProtocol}
	for _, name := range names {
		if wording == name {
			return ""
		}
	}
	if hint := strict.DidYouMean(wording, names); hint != "" {
		return hint
	}
	return "docs/environments.md has an example of a file"
}

// protocol checks the wording of the run's prompts.
func (d *decoder) protocol(t Train) {
	const path = "rollout.protocol"
	if d.isBad(path) {
		return
	}
	for _, p := range d.checkWording(t.Rollout.Protocol, path) {
		d.add(path, p)
	}
}

// checkWording is what is wrong with the file or the templates that a wording names.
func (d *decoder) checkWording(wording, path string) Problems {
	if d.known.Protocol == nil {
		return nil
	}
	problems := d.known.Protocol(wording)
	for i := range problems {
		problems[i].Path = path
	}
	return problems
}
