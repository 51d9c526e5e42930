package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/hub"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// weightsForm finds the files of weights that publish writes. transformers loads model.safetensors
// where it stands beside an index, so that one of an earlier version would be taken for this one's.
var weightsForm = regexp.MustCompile(`^model(-\d{5}-of-\d{5})?\.safetensors$|^model\.safetensors\.index\.json$`)

// publishToHub writes the folder of publish into the user's cache, uploads it and removes it.
func publishToHub(
	ctx context.Context, s store.Store, o exportOptions, open func() (*model.Device, error),
	at hub.Hub, up hub.Upload, out, progress io.Writer,
) (err error) {
	if up.Folder, err = folderToPublish(); err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(up.Folder); e != nil {
			err = errors.Join(err, fmt.Errorf("remove the folder that was uploaded: %w", e))
		}
	}()
	if o.version == 0 { // the newest, also if another is committed meanwhile
		head, err := store.Head(ctx, s, o.run)
		if err != nil {
			return fmt.Errorf("%w%s", err, adviceOn(err, o.run))
		}
		o.version = head.Manifest.Version()
	}
	o.dir = up.Folder
	var written bytes.Buffer
	if err := publish(ctx, s, o, open, &written, progress); err != nil {
		return err
	}
	_, what, _ := strings.Cut(written.String(), "\n") // after the folder's name
	up.Message = fmt.Sprintf("%s, version %d", o.run, o.version)
	up.Card, up.Mark = cardName, cardMark
	up.Stale = weightsForm.MatchString
	up.Say = func(line string) { fmt.Fprintln(progress, line) }
	done, err := at.Upload(ctx, up)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n%s", done.Address, what)
	if !done.Changed {
		_, err = fmt.Fprintf(out, "no commit: %s has all of it\n", up.Repo)
		return err
	}
	for _, name := range done.Removed {
		fmt.Fprintf(out, "removed %s, of other weights\n", name)
	}
	_, err = fmt.Fprintf(out, "sent %s of large files\n", human.Bytes(done.Sent))
	return err
}

// abandonedAfter is the age of a folder that a killed publish left.
const abandonedAfter = 24 * time.Hour

// folderToPublish makes a folder in the user's cache, and removes what killed publishes left there. The
// system's temporary folder may be in memory, and weights are large.
func folderToPublish() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder to write to: %w", err)
	}
	within := filepath.Join(cache, "reprise", "publish")
	if err := os.MkdirAll(within, 0o700); err != nil {
		return "", fmt.Errorf("make a folder to write to: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(within, "folder-*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp(within, "folder-")
	if err != nil {
		return "", fmt.Errorf("make a folder to write to: %w", err)
	}
	return dir, nil
}
