package main

import (
	"fmt"
	"io"

	"github.com/reprise-rl/reprise/workers/measure/study"
)

// writeStudy writes what is made of a folder's records, and prints the tables.
func writeStudy(folder study.Folder, out io.Writer) error {
	records, err := folder.Records()
	if err != nil {
		return err
	}
	files, err := study.Files(records)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := folder.Write(f.Name, f.Body); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, study.Tables(records))
	return err
}
