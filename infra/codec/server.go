package codec

import (
	"net/http"
	"net/url"
	"slices"

	"go.temporal.io/sdk/converter"
)

// maxRequest bounds a request's body: four of the largest messages that Temporal takes,
// in base64.
const maxRequest = 32 << 20

// Handler answers the temporal CLI (--codec-endpoint) and the pages of the Web UI at ui,
// a URL; "" is no page. Whoever reaches it can decrypt.
func (c *Codec) Handler(ui string) http.Handler {
	codec := http.MaxBytesHandler(converter.NewPayloadCodecHTTPHandler(c), maxRequest)
	allowed := origins(ui)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" {
			if !slices.Contains(allowed, origin) {
				http.Error(w, "pages of "+origin+" may not use this codec server", http.StatusForbidden)
				return
			}
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Allow-Methods", "POST")
			w.Header().Set("Access-Control-Allow-Headers", "Content-Type, X-Namespace, Authorization")
			w.Header().Set("Access-Control-Allow-Credentials", "true")
		}
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		codec.ServeHTTP(w, r)
	})
}

// origins are those of the Web UI's pages: a browser on this machine may call it by
// either name.
func origins(ui string) []string {
	u, err := url.Parse(ui)
	if err != nil || u.Host == "" {
		return nil
	}
	origin := func(host string) string { return u.Scheme + "://" + host }
	switch u.Hostname() {
	case "127.0.0.1", "localhost":
		return []string{origin("127.0.0.1:" + u.Port()), origin("localhost:" + u.Port())}
	}
	return []string{origin(u.Host)}
}
