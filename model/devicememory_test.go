package model

import (
	"io/fs"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/xla/executable"
)

func TestDeviceMemory(t *testing.T) {
	require.Greater(t, testDevice(t).Memory(), int64(64<<20))
	client, err := executable.Field[*pjrt.Client](testDevice(t).backend, "client")
	require.NoError(t, err)
	_, _, err = executable.DeviceMemory(client.AddressableDevices()[0])
	require.NotErrorIs(t, err, executable.ErrUnsupported, "the call's arguments are laid out as go-xla's")
	require.Error(t, err, "the CPU's plugin does not say")
	t.Log(err)
	require.Zero(t, testDevice(t).PeakMemory())
}

func TestHostMemory(t *testing.T) {
	machine := "MemFree: 1 kB\nMemTotal:  1024 kB\n"
	for _, test := range []struct {
		files map[string]string
		want  int64
	}{
		{nil, 0},
		{map[string]string{"/proc/meminfo": machine}, 1 << 20},
		{map[string]string{"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": "max\n"}, 1 << 20},
		{map[string]string{"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": "4096\n"}, 4096},
		{map[string]string{"/proc/meminfo": machine, "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 1 << 20},
		{map[string]string{"/sys/fs/cgroup/memory/memory.limit_in_bytes": "8192\n"}, 8192},
		{map[string]string{"/proc/meminfo": "MemTotal: many\n"}, 0},
	} {
		require.Equal(t, test.want, hostMemory(func(path string) ([]byte, error) {
			if text, ok := test.files[path]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}), "%v", test.files)
	}
}
