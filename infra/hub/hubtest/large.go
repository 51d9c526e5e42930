package hubtest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
)

// actions says where an object is to be sent to, if it is not here: whole, or in parts if it is larger than one.
func (h *Hub) actions(oid string, size int) map[string]any {
	if _, have := h.large[oid]; have {
		return nil
	}
	href, header := fmt.Sprintf("%s/whole/%s?signature=secret", h.store, oid), map[string]string{}
	if size > h.PartSize {
		href = h.URL + "/lfs/complete?signature=secret"
		header["chunk_size"] = fmt.Sprint(h.PartSize)
		for n := 1; (n-1)*h.PartSize < size; n++ {
			header[fmt.Sprintf("%05d", n)] = fmt.Sprintf("%s/part/%s/%d?signature=secret", h.store, oid, n)
		}
	}
	return map[string]any{
		"upload": map[string]any{"href": href, "header": header},
		"verify": map[string]any{"href": h.URL + "/lfs/verify"},
	}
}

func (h *Hub) batch(w http.ResponseWriter, r *http.Request, name string) {
	if h.find(w, r, name, true) == nil {
		return
	}
	const form = "application/vnd.git-lfs+json"
	if r.Header.Get("Content-Type") != form || r.Header.Get("Accept") != form {
		Refuse(w, http.StatusUnsupportedMediaType, "", "not a request of Git LFS")
		return
	}
	var in struct {
		Operation string
		Transfers []string
		Objects   []struct {
			OID  string
			Size int
		}
		HashAlgo string `json:"hash_algo"`
		Ref      struct{ Name string }
	}
	if !read(w, r, &in) {
		return
	}
	if in.Operation != "upload" || in.HashAlgo != "sha256" {
		Refuse(w, http.StatusUnprocessableEntity, "", "an upload by SHA-256 was expected")
		return
	}
	objects := []map[string]any{}
	for _, o := range in.Objects {
		object := map[string]any{"oid": o.OID, "size": o.Size}
		if actions := h.actions(o.OID, o.Size); actions != nil {
			object["actions"] = actions
		}
		objects = append(objects, object)
	}
	transfer := "basic"
	if h.XetOnly {
		transfer = "xet"
	}
	w.Header().Set("Content-Type", form)
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": transfer, "objects": objects})
}

// storeAnswers takes /whole/OID and /part/OID/NUMBER. Like S3, it wants the size before, and refuses
// a request that has a signature and a token.
func (h *Hub) storeAnswers(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength < 0 || r.Header.Get("Authorization") != "" || r.URL.Query().Get("signature") != "secret" || r.Method != http.MethodPut {
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	oid := parts[1]
	if parts[0] == "part" {
		if h.parts[oid] == nil {
			h.parts[oid] = map[string]string{}
		}
		h.parts[oid][parts[2]] = string(b)
	} else {
		h.large[oid] = string(b)
	}
	w.Header().Set("ETag", `"`+digest(string(b))+`"`)
}

// complete puts the parts of an object together.
func (h *Hub) complete(w http.ResponseWriter, r *http.Request) {
	var in struct {
		OID   string
		Parts []struct {
			PartNumber int
			ETag       string
		}
	}
	if r.URL.Query().Get("signature") != "secret" {
		Refuse(w, http.StatusForbidden, "", "no signature")
		return
	}
	if !read(w, r, &in) {
		return
	}
	var whole strings.Builder
	for i, p := range in.Parts {
		content, ok := h.parts[in.OID][fmt.Sprint(p.PartNumber)]
		if !ok || p.PartNumber != i+1 || p.ETag != `"`+digest(content)+`"` {
			Refuse(w, http.StatusBadRequest, "", fmt.Sprintf("part %d is not as it was sent", p.PartNumber))
			return
		}
		whole.WriteString(content)
	}
	delete(h.parts, in.OID)
	h.large[in.OID] = whole.String()
	answer(w, map[string]bool{"success": true})
}

// verify looks at an object, and drops one that is not what its name says.
func (h *Hub) verify(w http.ResponseWriter, r *http.Request) {
	var in struct {
		OID  string
		Size int
	}
	if !h.allowed(w, r, true) || !read(w, r, &in) {
		return
	}
	content, ok := h.large[in.OID]
	if !ok || len(content) != in.Size || digest(content) != in.OID {
		delete(h.large, in.OID)
		Refuse(w, http.StatusUnprocessableEntity, "", "the object is not what its name says")
		return
	}
	answer(w, map[string]any{})
}

// commit reads lines of JSON: a header, and an operation each.
func (h *Hub) commit(w http.ResponseWriter, r *http.Request, name string, repo *Repo, branch string, head Commit) {
	if r.Header.Get("Content-Type") != "application/x-ndjson" {
		Refuse(w, http.StatusUnsupportedMediaType, "", "lines of JSON were expected")
		return
	}
	files, summary, err := maps.Clone(head.Files), "", error(nil)
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for n := 0; lines.Scan(); n++ {
		var line struct {
			Key   string
			Value struct {
				Summary, Description, ParentCommit string
				Path, Content, Encoding, Algo, OID string
				Size                               int
			}
		}
		if err = json.Unmarshal(lines.Bytes(), &line); err != nil || (n == 0) != (line.Key == "header") {
			Refuse(w, http.StatusBadRequest, "", fmt.Sprintf("line %d is not understood", n+1))
			return
		}
		v := line.Value
		switch line.Key {
		case "header":
			if summary = v.Summary; v.ParentCommit != "" && v.ParentCommit != head.ID {
				Refuse(w, http.StatusPreconditionFailed, "", "A commit has happened since. Please refresh and try again.")
				return
			}
		case "file":
			var b []byte
			b, err = base64.StdEncoding.DecodeString(v.Content)
			files[v.Path] = string(b)
		case "lfsFile":
			content, have := h.large[v.OID]
			if !have || v.Algo != "sha256" || v.Size != len(content) {
				err = fmt.Errorf("LFS pointer pointed to a file that does not exist: %s", v.Path)
			}
			files[v.Path] = content
		case "deletedFile":
			if _, have := files[v.Path]; !have {
				err = fmt.Errorf("%s: %s", "A file with this name doesn't exist", v.Path)
			}
			delete(files, v.Path)
		default:
			err = fmt.Errorf("no operation %s", line.Key)
		}
		if err != nil {
			Refuse(w, http.StatusBadRequest, "", err.Error())
			return
		}
	}
	c := repo.add(branch, summary, files)
	if h.After != nil && h.After(w, r) {
		return
	}
	answer(w, map[string]any{"success": true, "commitOid": c.ID, "commitUrl": h.URL + "/" + name + "/commit/" + c.ID, "hookOutput": ""})
}
