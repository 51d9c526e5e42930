package store

// SnapshotDir is a snapshot's folder: "runs/RUN/b0/snapshots/000010.<sha12>".
func SnapshotDir(run string, branch, version int, digest string) string {
	return SnapshotPrefix(run, branch, version) + ShortDigest(digest)
}

// ModelDir is a base model's folder: "models/<sha12>".
func ModelDir(digest string) string { return ModelPrefix + ShortDigest(digest) }

// Version is the policy version that the chain's head made; 0 for an empty chain.
func (c Chain) Version() int {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].Manifest.Version()
}

// At finds an iteration in the chain.
func (c Chain) At(iteration int) (Link, bool) {
	if len(c) == 0 {
		return Link{}, false
	}
	i := iteration - c[0].Manifest.Iteration
	if i < 0 || i >= len(c) {
		return Link{}, false
	}
	return c[i], true
}

// AddUpload plants an incomplete upload, for tests of garbage collection.
func (m *Memory) AddUpload(u Upload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uploads = append(m.uploads, u)
}
