package tables

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/reprise-rl/reprise/infra/store"
)

// Content is the digest of a file's logical columns, as Encode gives it: it shows that the
// digest of rows is that of a file with them, whoever wrote it.
func Content(file []byte) (content string, err error) {
	defer recoverTable(&err)
	f, err := openTable(file)
	if err != nil {
		return "", err
	}
	hasher := newContentHasher(f.Schema())
	buf := make([]parquet.Row, 64)
	for _, group := range f.RowGroups() {
		if err := readGroup(group, buf, hasher.row); err != nil {
			return "", fmt.Errorf("read table: %w: %w", store.ErrInvalid, err)
		}
	}
	return hasher.sum(), nil
}

func readGroup(group parquet.RowGroup, buf []parquet.Row, each func(parquet.Row)) error {
	rows := group.Rows()
	defer rows.Close()
	for {
		n, err := rows.ReadRows(buf)
		for _, row := range buf[:n] {
			each(row)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
