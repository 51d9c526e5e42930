package workflows

import (
	"net/url"
	"strings"
)

// PageName is the name of a workflow's page below /runs/ of the server of pages: one segment of a path for every id. In a
// URL it is percent-encoded once more, as each segment is.
func PageName(id string) string {
	name := url.PathEscape(id)
	if strings.Trim(name, ".") == "" { // a browser would go up
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	return name
}

// link is a link to a workflow's page, for its details; "" if no server of pages is known.
func (w *Workflows) link(id string) string {
	if w.PagesURL == "" || id == "" {
		return ""
	}
	return "[Page](" + strings.TrimRight(w.PagesURL, "/") + "/runs/" + url.PathEscape(PageName(id)) + "/)\n\n"
}
