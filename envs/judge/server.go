package judge

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Server says how a server of the chat-completions protocol is reached.
type Server struct {
	// Name is what a spec calls it: a letter or digit, then up to 63 of a-z, 0-9, "_" and "-".
	Name string
	// URL is its address, to which /chat/completions is added: http://127.0.0.1:8000/v1. What stands after "?" may be a
	// secret and is not shown.
	URL string
	// Key goes with each request as a bearer's token; "" is none. It is not shown.
	Key string
}

// endpoint is the path that is added to an address.
const endpoint = "/chat/completions"

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// nameForm says what validName allows.
const nameForm = "a letter or digit, then up to 63 of a-z, 0-9, _ and -"

// BadName says what the name of a judge must be if it is not that; "" if it is. Where a model is from, a spec checks.
func BadName(name string) string {
	if validName.MatchString(name) || IsModel(name) {
		return ""
	}
	return "the NAME of a worker's --judge NAME=URL: " + nameForm + "; run; or a model, as \"hf:NAME\""
}

// Parse reads NAME=URL, the value of --judge. The error shows no part in which a secret may stand.
func Parse(value string) (Server, error) {
	name, address, _ := strings.Cut(value, "=")
	address = strings.TrimSpace(address)
	if name == "" || address == "" {
		return Server{}, fmt.Errorf("found %s, want NAME=URL, as in grader=http://127.0.0.1:8000/v1", strict.Quote(name))
	}
	if !validName.MatchString(name) {
		return Server{}, fmt.Errorf("found the name %s, want %s", strict.Quote(name), nameForm)
	}
	if name == Own {
		return Server{}, fmt.Errorf("found the name %q, want another: it stands for the run's own engine", name)
	}
	s := Server{Name: name, URL: address}
	_, err := s.address()
	return s, err
}

// address is where questions go. The error shows no part in which a secret may stand.
func (s Server) address() (string, error) {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return "", fmt.Errorf("judge %s: its address is no URL", s.Name)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("judge %s: its address begins with %q, want http://HOST or https://HOST", s.Name, u.Scheme+"://"+u.Host)
	case u.User != nil:
		return "", fmt.Errorf("judge %s: its address has a user or a password; --judge-variable %[1]s=VARIABLE gives it a key", s.Name)
	case u.Fragment != "":
		return "", fmt.Errorf("judge %s: its address has a part after #, which no server gets", s.Name)
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), endpoint) + endpoint
	u.RawPath = ""
	return u.String(), nil
}
