package live

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/loopback"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/runs"
	"github.com/reprise-rl/reprise/workflows"
)

// Options are what a server shows, and where it keeps pages.
type Options struct {
	Client client.Client
	Store  store.Store
	// Folder gets a folder with the pages while the server runs; "" is the system's temporary folder.
	Folder string
}

//go:embed assets
var assets embed.FS

// most is how many runs are listed.
const most = 200

// Listen listens at host:port; without a host at 127.0.0.1. Port 0 is a free one.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	return loopback.Listen(ctx, "serve the pages", address)
}

// URL is where the pages of a listener are.
func URL(l net.Listener) string { return "http://" + l.Addr().String() }

// Serve serves the pages until ctx ends, and closes the listener. What it kept is removed.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	folder, err := os.MkdirTemp(o.Folder, "reprise-pages-*")
	if err != nil {
		return fmt.Errorf("make a folder for the pages: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is the system's to clear
	return loopback.Serve(ctx, "serve the pages", l, &http.Server{
		Handler:           handler(o, folder, isLoopback(l.Addr())),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		MaxHeaderBytes:    1 << 14,
	})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// server answers the requests.
type server struct {
	pages
	client    client.Client
	templates *template.Template
}

// handler answers at all paths. With local only requests to a loopback name are answered: else a page of another site could
// have its name resolved to this machine, and read what is here.
func handler(o Options, folder string, local bool) http.Handler {
	s := &server{
		pages: pages{store: o.Store, folder: folder}, client: o.Client,
		templates: template.Must(template.New("").Funcs(template.FuncMap{
			"count": runs.Count, "number": runs.Number, "percent": runs.Percent, "visible": human.Visible,
			"path": func(id string) string { return "/runs/" + url.PathEscape(workflows.PageName(id)) + "/" },
		}).ParseFS(assets, "assets/*.html")),
	}
	own, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is in the program
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.list)
	mux.HandleFunc("GET /runs/{id}/{$}", s.shell)
	mux.HandleFunc("GET /runs/{id}/now", s.now)
	mux.HandleFunc("GET /runs/{id}/at/{version}/{file...}", s.file)
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(own)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); local && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this server answers to localhost and 127.0.0.1 only", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Frame-Options", "SAMEORIGIN")
		w.Header().Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

// policy is for the server's own pages; a report's page has its own.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"

func (s *server) render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = s.templates.ExecuteTemplate(w, name, data) // the browser is gone
}

// list lists the runs and sweeps of the namespace.
func (s *server) list(w http.ResponseWriter, r *http.Request) {
	data := struct {
		Runs []runs.Run
		Left int
		Err  string
	}{}
	all, err := runs.List(r.Context(), s.client, runs.Wanted{})
	if err != nil {
		data.Err = err.Error()
	}
	data.Runs = all[:min(most, len(all))]
	data.Left = len(all) - len(data.Runs)
	s.render(w, "list.html", data)
}

// id is the id that a path names; false if it names none, which is answered.
func id(w http.ResponseWriter, r *http.Request) (string, bool) {
	id, err := url.PathUnescape(r.PathValue("id"))
	if err != nil || id == "" {
		http.NotFound(w, r)
		return "", false
	}
	return id, true
}

// shell is the page around a run's or a sweep's page, which follows it.
func (s *server) shell(w http.ResponseWriter, r *http.Request) {
	if id, ok := id(w, r); ok {
		s.render(w, "run.html", struct{ ID string }{id})
	}
}

// now says which version of a page is the newest, and how its workflow is.
type now struct {
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"`
	// Error is why there is no page, or why the state is not known.
	Error string `json:"error,omitempty"`
}

func (s *server) now(w http.ResponseWriter, r *http.Request) {
	id, ok := id(w, r)
	if !ok {
		return
	}
	var n now
	version, err := s.newest(r.Context(), id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		n.Error = "nothing is committed yet"
	case err != nil:
		n.Error = err.Error()
	}
	n.Version = version
	state, err := runs.StateOf(r.Context(), s.client, id)
	if err != nil && n.Error == "" {
		n.Error = err.Error()
	}
	n.State = state
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(n) // the browser is gone
}

// file is a file of a version of a page.
func (s *server) file(w http.ResponseWriter, r *http.Request) {
	id, ok := id(w, r)
	if !ok {
		return
	}
	name := r.PathValue("file")
	if name == "" {
		name = "index.html"
	}
	path := s.path(id, r.PathValue("version"), name)
	if path == "" {
		http.NotFound(w, r)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	http.ServeContent(w, r, name, time.Time{}, f)
}
