package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// go-xla v0.4.5 tells by the text of a plugin's whole path what the plugin is for. A CPU's
// plugin in a folder named cuda would get CUDA's options and programs. These are the words
// that it looks for, in upper case, and the device that each stands for.
var devices = []struct{ word, device string }{
	{"CPU", "cpu"}, {"CUDA", "cuda"}, {"NVIDIA", "cuda"}, {"ROCM", "rocm"}, {"AMD", "rocm"},
}

// opened are the folders that LoadPath keeps open, by their paths.
var opened struct {
	sync.Mutex
	folders map[string]*os.File
}

// LoadPath returns the path by which go-xla has to load the plugin at an absolute path: the
// same file, by a path in which the plugin's own name alone says what it is for. It is path
// itself unless the folders above it name another device than the plugin; then it leads
// through the folder's descriptor, which stays open, and $ORIGIN in the library still finds
// what lies beside it.
func LoadPath(path string) (string, error) {
	folder, name := filepath.Split(path)
	of := device(name)
	if of == "" || of == device(folder) || device(folder) == "" {
		return path, nil
	}
	opened.Lock()
	defer opened.Unlock()
	f := opened.folders[folder]
	if f == nil {
		var err error
		if f, err = os.Open(folder); err != nil {
			return "", fmt.Errorf("open the plugin's folder: %w", err)
		}
		if opened.folders == nil {
			opened.folders = map[string]*os.File{}
		}
		opened.folders[folder] = f
	}
	// By the process's number, so that the path means the same to the programs that XLA starts.
	through := fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), f.Fd(), name)
	if _, err := os.Stat(through); err != nil {
		return path, nil // a system without it
	}
	return through, nil
}

// device is the one device that a text names for go-xla; "" for none, "several" for several.
func device(text string) string {
	found := ""
	for _, d := range devices {
		if !strings.Contains(strings.ToUpper(text), d.word) || found == d.device {
			continue
		}
		if found != "" {
			return "several"
		}
		found = d.device
	}
	return found
}

// IsCUDA says whether the plugin at a path is for NVIDIA's devices: if its own name, or where
// that says nothing its path, has "cuda" or "nvidia" in it.
func IsCUDA(path string) bool {
	text := filepath.Base(path)
	if device(text) == "" {
		text = path
	}
	text = strings.ToUpper(text)
	return strings.Contains(text, "CUDA") || strings.Contains(text, "NVIDIA")
}
