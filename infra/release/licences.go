package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licenceName is what files are called that a licence asks to be passed on.
var licenceName = regexp.MustCompile(`(?i)^(un)?(licen[sc]es?|copying|copyrights?|notices?|patents|third[-_]party[-_].*)([-._].*)?$`)

// without are the modules, each at the version that somebody has looked at, whose files have no licence: what is written in its place.
// Any other such module stops a release.
var without = map[string]string{
	"github.com/cactus/go-statsd-client/statsd@v0.0.0-20200423205355-cb0885a1018c": "This module is a folder of the repository " +
		"github.com/cactus/go-statsd-client, whose licence (MIT) lies in the folder above. It is the text of\n" +
		"github.com/cactus/go-statsd-client/v5, which is beside this one. The Temporal server links it.",
	"github.com/nexus-rpc/nexus-proto-annotations@v0.1.0": "The files of this module have no licence. It is generated Go for two protobuf options,\n" +
		"by the authors of github.com/nexus-rpc/sdk-go (MIT), which go.temporal.io/api (MIT) needs.",
}

// chosen are the licences of modules that let one choose, and whose texts alone do not say so.
var chosen = map[string][]string{
	"github.com/golang/freetype": {"FTL"}, // or GPL-2.0-or-later
}

// licenceFiles are the licences of a module, by their paths in it: those beside its go.mod, and those in the folders of linked packages
// and above them, where foreign code was taken in.
func licenceFiles(m module) (map[string][]byte, error) {
	folders := map[string]bool{m.dir: true}
	for _, folder := range m.packages {
		for ; len(folder) > len(m.dir); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	files := map[string][]byte{}
	for folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("look for the licences of %s: %w", m, err)
		}
		var paths []string
		for _, e := range entries {
			switch {
			case !licenceName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go"):
			case e.Type().IsRegular():
				paths = append(paths, filepath.Join(folder, e.Name()))
			case e.IsDir(): // such as licenses/ftl.txt
				inside, err := filepath.Glob(filepath.Join(folder, e.Name(), "*.txt"))
				if err != nil {
					return nil, fmt.Errorf("look for the licences of %s: %w", m, err)
				}
				paths = append(paths, inside...)
			}
		}
		for _, path := range paths {
			body, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read a licence of %s: %w", m, err)
			}
			name, err := filepath.Rel(m.dir, path)
			if err != nil {
				return nil, fmt.Errorf("a licence of %s: %w", m, err)
			}
			files[filepath.ToSlash(name)] = body
		}
	}
	if why, ok := without[m.String()]; ok && len(files) == 0 {
		files["NOTE"] = []byte(why + "\n")
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file with its licence: what may not be passed on is not released", m)
	}
	return files, nil
}

// wellRead is the share of a file's words, in percent, that must be a known licence's for the file to be called by it.
const wellRead = 75

// identify returns the SPDX identifiers of the licences that the files are, sorted; nil if none is known.
func identify(files map[string][]byte) []string {
	var ids []string
	for _, body := range files {
		read := licensecheck.Scan(body)
		if read.Percent < wellRead {
			continue
		}
		for _, match := range read.Match {
			if !match.IsURL && !slices.Contains(ids, match.ID) {
				ids = append(ids, match.ID)
			}
		}
	}
	slices.Sort(ids)
	return ids
}
