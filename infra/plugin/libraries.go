package plugin

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Library is a file of NVIDIA's that a CUDA plugin computes with.
type Library struct {
	// Name is the file's name, such as "libcublas.so.13" or "ptxas".
	Name string `json:"name"`
	// Path is where it was found.
	Path string `json:"path"`
	// Digest is its SHA-256, lower-case hex.
	Digest string `json:"sha256"`
}

// The files that decide bits: the kernels of cuBLAS, cuDNN and NCCL, and what makes machine
// code of XLA's kernels. The driver is not among them: the fingerprint has its version.
var (
	libraryPatterns = []string{
		"libcublas.so.*", "libcublasLt.so.*", "libcudnn*.so.*", "libnccl.so.*", "libnvJitLink.so.*",
		"libnvrtc.so.*", "libnvrtc-builtins.so.*",
	}
	toolFiles = []string{"bin/ptxas", "bin/nvlink", "nvvm/libdevice/libdevice.10.bc"}
)

// Libraries finds and hashes the files that decide the bits of a CUDA plugin, sorted by name:
// about 2 GB, a second or two. A file is looked for where the loader and XLA look: in the
// folders of the library's own search path, in LD_LIBRARY_PATH, in dataDir (the value of
// --xla_gpu_cuda_data_dir, or ""), in nvidia/cu1? beside the plugin's package, in /usr/local/cuda
// and on the PATH, and in the system's folders. What is not found is left out: XLA says what it
// lacks when it needs it. [Loaded] says afterwards what the process did load.
func Libraries(path, dataDir string) ([]Library, error) {
	search, err := searchPath(path)
	if err != nil {
		return nil, err
	}
	roots := toolRoots(path, dataDir)
	for _, root := range roots {
		search = append(search, filepath.Join(root, "lib"), filepath.Join(root, "lib64"))
	}
	search = append(search, "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")

	var found []Library
	have := map[string]bool{}
	for _, folder := range search {
		for _, pattern := range libraryPatterns {
			matches, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				return nil, fmt.Errorf("look for NVIDIA's libraries: %w", err)
			}
			for _, match := range matches {
				name, ok := soname(filepath.Base(match))
				if !ok || have[name] || regular(match) != nil {
					continue
				}
				have[name] = true
				found = append(found, Library{Name: name, Path: match})
			}
		}
	}
	for _, tool := range toolFiles {
		if where := findTool(tool, roots); where != "" {
			found = append(found, Library{Name: filepath.Base(tool), Path: where})
		}
	}
	slices.SortFunc(found, func(a, b Library) int { return strings.Compare(a.Name, b.Name) })
	var hashing errgroup.Group
	hashing.SetLimit(8)
	for i := range found {
		hashing.Go(func() (err error) {
			found[i].Digest, err = Hash(found[i].Path)
			return err
		})
	}
	return found, hashing.Wait()
}

// soname is the name by which a library is loaded: libcublas.so.13, for a file of that name or
// of a longer one such as libcublas.so.13.0.2. Two numbers are the whole name of libnvrtc-builtins.
// NVIDIA's second builds (.alt.) are not loaded.
func soname(file string) (string, bool) {
	stem, version, ok := strings.Cut(file, ".so.")
	if !ok || strings.Contains(stem, ".") {
		return "", false
	}
	if stem != "libnvrtc-builtins" {
		version, _, _ = strings.Cut(version, ".")
	}
	return stem + ".so." + version, true
}

// searchPath are the folders in which the loader looks for what a library loads by name: those
// of its RPATH, and then those of the environment.
func searchPath(path string) ([]string, error) {
	library, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the plugin's search path: %w", err)
	}
	defer library.Close()
	origin := filepath.Dir(path)
	var folders []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, err := library.DynString(tag)
		if err != nil {
			return nil, fmt.Errorf("read the plugin's search path: %w", err)
		}
		for _, value := range values {
			for folder := range strings.SplitSeq(value, ":") {
				folders = append(folders, strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(folder))
			}
		}
	}
	for folder := range strings.SplitSeq(os.Getenv("LD_LIBRARY_PATH"), ":") {
		folders = append(folders, folder)
	}
	out := folders[:0]
	for _, folder := range folders {
		if folder = filepath.Clean(folder); filepath.IsAbs(folder) && !slices.Contains(out, folder) {
			out = append(out, folder)
		}
	}
	return out, nil
}

// toolRoots are the folders in whose bin and nvvm XLA looks for programs.
func toolRoots(path, dataDir string) []string {
	var roots []string
	if dataDir != "" {
		roots = append(roots, dataDir)
	}
	for _, up := range []string{"../..", ".."} {
		for _, root := range []string{"cu13", "cuda_nvcc"} { // CUDA 13 and 12
			roots = append(roots, filepath.Join(filepath.Dir(path), up, "nvidia", root))
		}
	}
	return append(roots, "/usr/local/cuda")
}

// findTool returns the path of one of NVIDIA's files, or "".
func findTool(tool string, roots []string) string {
	for _, root := range roots {
		if where := filepath.Join(root, filepath.FromSlash(tool)); regular(where) == nil {
			return where
		}
	}
	if name, ok := strings.CutPrefix(tool, "bin/"); ok {
		if where, err := exec.LookPath(name); err == nil {
			return where
		}
	}
	return ""
}

// Loaded returns the paths of the files that decide bits among those that this process has in
// memory, sorted. Linux only; elsewhere there are none.
func Loaded() ([]string, error) {
	maps, err := os.Open("/proc/self/maps")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is loaded: %w", err)
	}
	defer maps.Close()
	return loaded(maps)
}

// loaded reads the files that decide bits from a process's maps.
func loaded(maps io.Reader) ([]string, error) {
	var out []string
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		_, path, ok := strings.Cut(lines.Text(), " /")
		path = strings.TrimSuffix("/"+path, " (deleted)")
		if !ok || slices.Contains(out, path) {
			continue
		}
		for _, pattern := range libraryPatterns {
			if match, _ := filepath.Match(pattern, filepath.Base(path)); match {
				out = append(out, path)
				break
			}
		}
	}
	slices.Sort(out)
	return out, lines.Err()
}
