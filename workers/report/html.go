package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"strings"

	"github.com/reprise-rl/reprise/infra/build"
)

//go:embed assets/uplot/uPlot.iife.min.js assets/uplot/uPlot.min.css assets/page.css assets/page/*.js
var assets embed.FS

// style and program are the page's own and the plotting library's, in the order in which
// they are in the page.
func style() ([]string, error) { return read("assets/uplot/uPlot.min.css", "assets/page.css") }

func programs() ([]string, error) {
	names, err := fs.Glob(assets, "assets/page/*.js")
	if err != nil {
		return nil, err
	}
	own, err := read(names...) // sorted: their names begin with numbers
	if err != nil {
		return nil, err
	}
	library, err := read("assets/uplot/uPlot.iife.min.js")
	if err != nil {
		return nil, err
	}
	return append(library, "(() => {\n'use strict'\n"+strings.Join(own, "\n")+"})()\n"), nil
}

func read(names ...string) ([]string, error) {
	var out []string
	for _, name := range names {
		b, err := assets.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the page's own file: %w", err)
		}
		out = append(out, string(b))
	}
	return out, nil
}

// sources are the hashes of inline elements for a content security policy.
func sources(texts []string) string {
	var out []string
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		out = append(out, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	return strings.Join(out, " ")
}

// html is the page. Its data is in an element that no browser runs. JSON as Go writes it
// has no <, >, & and line separators, so nothing in it can end the element.
func (p page) html() ([]byte, error) {
	p.Build = build.Read().String()
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the page: %w", err)
	}
	styles, err := style()
	if err != nil {
		return nil, err
	}
	scripts, err := programs()
	if err != nil {
		return nil, err
	}
	// In addition to its own programs the page runs the pieces in its folder: 'self'
	// allows them on a server, file: when the page is opened from a disk. Which files
	// those are, the page's only trusted-types policy decides.
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; " +
		"style-src " + sources(styles) + "; script-src " + sources(scripts) + " 'self' file:; " +
		"require-trusted-types-for 'script'; trusted-types reprise"
	var out bytes.Buffer
	out.WriteString("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	fmt.Fprintf(&out, "<meta http-equiv=\"Content-Security-Policy\" content=\"%s\">\n", html.EscapeString(policy))
	out.WriteString("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
	fmt.Fprintf(&out, "<title>%s · reprise</title>\n", html.EscapeString(p.Title))
	for _, s := range styles {
		out.WriteString("<style>" + s + "</style>\n")
	}
	out.WriteString("</head>\n<body>\n<noscript>This report draws itself with JavaScript, which is off.</noscript>\n<div id=\"page\"></div>\n<script type=\"application/json\" id=\"data\">")
	out.Write(data)
	out.WriteString("</script>\n")
	for _, s := range scripts {
		out.WriteString("<script>" + s + "</script>\n")
	}
	out.WriteString("</body>\n</html>\n")
	return out.Bytes(), nil
}
