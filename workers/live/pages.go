package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workflows"
)

// The pages are made in the server's folder and kept there, so many of them at most.
const kept = 16

// idle is how long a page that took so long is not made again: it takes at most a sixth of the time. Tests set it.
var idle = func(took time.Duration) time.Duration { return max(2*time.Second, 5*took) }

// pages makes the pages of runs and sweeps from the store, each when it is asked for and there is more to show.
type pages struct {
	store  store.Store
	folder string
	mu     sync.Mutex
	asked  []*made // the one that was asked for last is the last
	count  int     // of all that were asked for: names their folders
}

// made is a run's or a sweep's page. Its mutex guards what stands below it.
type made struct {
	id, folder string
	mu         sync.Mutex
	// version is the digest of index.html; its files are in the folder. before is the version before it, whose files a
	// browser may still ask for.
	version, before string
	head            string    // of a run: its newest manifest when the page was made
	at              time.Time // when it was looked whether there is more to show
	took            time.Duration
}

// newest is the version of the newest page of a run or a sweep. The error is a store.ErrNotFound if nothing is stored of
// it.
func (p *pages) newest(ctx context.Context, id string) (version string, err error) {
	m := p.of(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.version != "" && time.Since(m.at) < idle(m.took) {
		return m.version, nil
	}
	// A sweep has no head: its page is made anew.
	head := ""
	if link, err := store.Head(ctx, p.store, id); err == nil {
		head = link.Ref.Digest
		if head == m.head && m.version != "" {
			m.at = time.Now()
			return m.version, nil
		}
	}
	if err := m.make(ctx, p.store); err != nil {
		return "", err
	}
	m.head = head
	return m.version, nil
}

// make makes the page anew.
func (m *made) make(ctx context.Context, s store.Store) error {
	began := time.Now()
	part := filepath.Join(m.folder, "part")
	if err := os.RemoveAll(part); err != nil {
		return fmt.Errorf("clear the folder of a page: %w", err)
	}
	sum := sha256.New()
	sink := report.IntoFolder(part)
	err := write(ctx, s, m.id, func(name string, body []byte) error {
		if name == "index.html" { // it comes last, and names what else there is
			sum.Write(body)
		}
		return sink(name, body)
	})
	if err != nil {
		return err
	}
	version := hex.EncodeToString(sum.Sum(nil)[:6])
	m.at, m.took = time.Now(), time.Since(began)
	if version == m.version {
		return os.RemoveAll(part)
	}
	if m.before != "" {
		if err := os.RemoveAll(filepath.Join(m.folder, m.before)); err != nil {
			return fmt.Errorf("remove a page: %w", err)
		}
	}
	if err := os.Rename(part, filepath.Join(m.folder, version)); err != nil {
		return fmt.Errorf("put a page in its place: %w", err)
	}
	m.before, m.version = m.version, version
	return nil
}

// write writes the page of a sweep or of a run.
func write(ctx context.Context, s store.Store, id string, sink report.Sink) error {
	sweep, err := report.LoadSweep(ctx, s, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = report.Write(ctx, s, id, sink)
		return err
	case err != nil:
		return err
	}
	for i := range sweep.Trials {
		if t := &sweep.Trials[i]; t.Run != nil {
			t.Page = "../../../" + workflows.PageName(t.Run.ID) + "/" // from at/VERSION/ of the sweep
		}
	}
	_, err = report.WriteSweep(ctx, sweep, sink)
	return err
}

// path is where a file of a version is; "" if that version is not there.
func (p *pages) path(id, version, name string) string {
	m := p.of(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if version == "" || version != m.version && version != m.before || !filepath.IsLocal(filepath.FromSlash(name)) {
		return ""
	}
	return filepath.Join(m.folder, version, filepath.FromSlash(name))
}

// of is the page of an id. The one that was not asked for longest gives way to a new one.
func (p *pages) of(id string) *made {
	p.mu.Lock()
	defer p.mu.Unlock()
	var m *made
	if i := slices.IndexFunc(p.asked, func(m *made) bool { return m.id == id }); i >= 0 {
		m = p.asked[i]
		p.asked = slices.Delete(p.asked, i, i+1)
	} else {
		m = &made{id: id, folder: filepath.Join(p.folder, strconv.Itoa(p.count))}
		p.count++
	}
	if len(p.asked) == kept {
		_ = os.RemoveAll(p.asked[0].folder) // what is left goes with the server's folder
		p.asked = slices.Delete(p.asked, 0, 1)
	}
	p.asked = append(p.asked, m)
	return m
}
