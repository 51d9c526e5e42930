package tools

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"sync"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/retrieve"
)

// corpus is documents and the index in which they are searched.
type corpus struct {
	documents []envs.Document
	// index is made once, when somebody searches.
	index func() *retrieve.Index
}

// corpora are the last ones that were read, the newest first: every step of a run makes its tools, and to read and index
// a corpus each time would cost more than the step.
var corpora struct {
	sync.Mutex
	kept []keptCorpus
}

type keptCorpus struct {
	digest string
	corpus *corpus
}

// maxKept is how many stay in memory.
const maxKept = 4

// corpusOf gives the corpus with a digest: the one that is kept, or the one that read gives. Those who come meanwhile
// wait.
func corpusOf(digest string, read func() ([]envs.Document, error)) (*corpus, error) {
	corpora.Lock()
	defer corpora.Unlock()
	if at := slices.IndexFunc(corpora.kept, func(k keptCorpus) bool { return k.digest == digest }); at >= 0 {
		k := corpora.kept[at]
		copy(corpora.kept[1:at+1], corpora.kept[:at])
		corpora.kept[0] = k
		return k.corpus, nil
	}
	documents, err := read()
	if err != nil {
		return nil, err
	}
	c := &corpus{documents: documents, index: sync.OnceValue(func() *retrieve.Index { return indexed(documents) })}
	kept := append([]keptCorpus{{digest, c}}, corpora.kept...)
	corpora.kept = kept[:min(len(kept), maxKept)]
	return c, nil
}

// indexed indexes documents by title and text.
func indexed(documents []envs.Document) *retrieve.Index {
	texts := make([]retrieve.Document, len(documents))
	for i, d := range documents {
		texts[i] = retrieve.Document{ID: d.ID, Text: d.Title + "\n" + d.Text}
	}
	return retrieve.New(texts, retrieve.Anserini)
}

// fileDigest names the contents of a file.
func fileDigest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// documentsDigest names the documents of an environment. It is no digest of a file.
func documentsDigest(documents []envs.Document) string {
	h := sha256.New()
	h.Write([]byte("reprise/tools/documents/1"))
	var length [8]byte
	for _, d := range documents {
		for _, text := range []string{d.ID, d.Title, d.Text} {
			binary.BigEndian.PutUint64(length[:], uint64(len(text)))
			h.Write(length[:])
			h.Write([]byte(text))
		}
	}
	return "documents " + hex.EncodeToString(h.Sum(nil))
}
