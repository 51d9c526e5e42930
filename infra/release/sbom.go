package main

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/infra/plugin"
)

// part is a program of the archive in the bill of materials.
type part struct {
	program
	digest string
}

// bill is the bill of materials, as CycloneDX 1.6 has it: the programs and the plugin with their digests, each Go module with the licences
// that its files are, and which program links which. It has neither a time nor a serial number, so that it is the same each time.
func bill(programs []part, pin plugin.Pin, licences map[string][]string) ([]byte, error) {
	version := build.Read().Version
	self := cyclonedx.Component{
		BOMRef: "reprise", Type: cyclonedx.ComponentTypeApplication, Name: "reprise", Version: version, Licenses: licencesOf([]string{"Apache-2.0"}),
		PackageURL: purl("golang", ownModule, "v"+version),
	}
	components := []cyclonedx.Component{{
		BOMRef: "plugin", Type: cyclonedx.ComponentTypeLibrary, Name: plugin.FileName, Version: pin.Version,
		PackageURL: purl("pypi", pin.Project, pin.Version), Hashes: sha256Of(pin.Digest), Licenses: licencesOf(licences["plugin"]),
	}}
	parts := []string{"plugin"}
	var needs []cyclonedx.Dependency
	modules := map[string]module{}
	for _, p := range programs {
		components = append(components, cyclonedx.Component{
			BOMRef: "program:" + p.name, Type: cyclonedx.ComponentTypeApplication, Name: p.name, Version: strings.TrimPrefix(p.main, "v"),
			Hashes: sha256Of(p.digest),
		})
		if p.main == "" {
			components[len(components)-1].Version = version
		}
		parts = append(parts, "program:"+p.name)
		links := []string{"std@" + p.compiler}
		modules[links[0]] = module{path: "std", version: strings.TrimPrefix(p.compiler, "go")}
		for _, m := range p.modules {
			links = append(links, m.String())
			modules[m.String()] = m
		}
		slices.Sort(links)
		needs = append(needs, cyclonedx.Dependency{Ref: "program:" + p.name, Dependencies: &links})
	}
	for at, m := range modules {
		c := cyclonedx.Component{
			BOMRef: at, Type: cyclonedx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: purl("golang", m.path, m.version),
			Licenses: licencesOf(licences[at]),
		}
		if m.sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.sum}}
		}
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	slices.Sort(parts)
	needs = append(needs, cyclonedx.Dependency{Ref: "reprise", Dependencies: &parts})
	slices.SortFunc(needs, func(a, b cyclonedx.Dependency) int { return strings.Compare(a.Ref, b.Ref) })

	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &self}
	bom.Components, bom.Dependencies = &components, &needs
	var out bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON)
	if err := encoder.SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

func sha256Of(digest string) *[]cyclonedx.Hash {
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: digest}}
}

// licencesOf names licences by their SPDX identifiers; what no identifier is known of is in the folder licences.
func licencesOf(ids []string) *cyclonedx.Licenses {
	if len(ids) == 0 {
		return &cyclonedx.Licenses{{License: &cyclonedx.License{Name: "see the folder licences"}}}
	}
	var out cyclonedx.Licenses
	for _, id := range ids {
		of := &cyclonedx.License{ID: id}
		if !slices.Contains(spdx, id) {
			of = &cyclonedx.License{Name: id} // the recognizer's own name
		}
		out = append(out, cyclonedx.LicenseChoice{License: of})
	}
	return &out
}

// spdx are the identifiers of SPDX's list that modules here have.
var spdx = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-2-Clause-Views", "BSD-3-Clause", "BSD-3-Clause-Open-MPI", "BSL-1.0", "CC-BY-4.0", "CC0-1.0", "FTL",
	"ISC", "MIT", "MIT-0", "MPL-2.0", "NCSA", "OFL-1.1", "Spencer-94", "Unlicense", "Zlib",
}

// purl is a package URL.
func purl(kind, name, version string) string {
	segments := strings.Split(name, "/")
	for i := range segments {
		segments[i] = url.PathEscape(segments[i])
	}
	return fmt.Sprintf("pkg:%s/%s@%s", kind, strings.Join(segments, "/"), url.PathEscape(version))
}
