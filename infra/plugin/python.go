package plugin

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/wheels"
)

// PythonEnv is the environment variable that names the Python in which [FromPython] looks.
const PythonEnv = "REPRISE_PYTHON"

// cudaPin is the CUDA plugin of that name.
func cudaPin(name string) (Pin, bool) {
	for _, pin := range Pins {
		if pin.Name == name && pin.cuda() {
			return pin, true
		}
	}
	return Pin{}, false
}

// pathOfCUDA is the path of a CUDA plugin: where `make plugin` has put it, or in a Python.
func pathOfCUDA(pin Pin, dir string) (string, error) {
	installed, err := below(dir, pin.Name+"/"+pin.Path)
	if err != nil || installed != "" {
		return installed, err
	}
	found, err := FromPython(pin.Name)
	if err != nil {
		return "", fmt.Errorf("%w: there is no %s/%s/%s in this folder or above, and no Python has one: %w: run `make plugin PLUGIN=%s`, or name a plugin's path",
			ErrMissing, Folder, pin.Name, pin.Path, err, pin.Name)
	}
	return found, nil
}

// FromPython returns the path of the CUDA plugin that a Python has, as pip has installed
// jax-cuda13-pjrt with NVIDIA's libraries beside it. The Python is that of REPRISE_PYTHON, or
// python3. name is cuda13 or cuda12. The Python tells where the package lies; nothing of it is run.
func FromPython(name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	python := cmp.Or(os.Getenv(PythonEnv), "python3")
	module := "jax_plugins.xla_" + name
	var said bytes.Buffer
	command := exec.CommandContext(ctx, python, "-c", "import importlib.util as u; s = u.find_spec('"+module+"'); print(s.submodule_search_locations[0] if s else '')")
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", python, err, wheels.Tail(said.Bytes()))
	}
	folder := strings.TrimSpace(said.String())
	if folder == "" {
		return "", fmt.Errorf("%s has no package %s", python, module)
	}
	found := folder + "/xla_cuda_plugin.so"
	if err := regular(found); err != nil {
		return "", fmt.Errorf("%s: %w", python, err)
	}
	return found, nil
}
