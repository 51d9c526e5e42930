package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model/xla/executable"
)

func TestMergeFlags(t *testing.T) {
	for _, c := range []struct {
		lists []string
		want  string
	}{
		{nil, ""},
		{[]string{pinnedFlags}, "--xla_cpu_experimental_ynn_fusion_type=-reduce --xla_cpu_max_isa=AVX2 --xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true"},
		{[]string{"--b=1 --a", "--b=2\n  --c=x=y"}, "--a --b=2 --c=x=y"},
	} {
		got, err := mergeFlags(c.lists...)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := mergeFlags("--a", "b=2")
	require.ErrorContains(t, err, `"b=2"`)
	require.Equal(t, "x=y", flagValue("--a --c=x=y", "--c"))
	require.Equal(t, "", flagValue("--a --c=x", "--a"))
}

func TestFingerprint(t *testing.T) {
	f := testDevice(t).Fingerprint()
	t.Logf("%s %s", f.ID(), f.JSON())
	require.Len(t, f.ID(), 12)
	require.Len(t, f.Plugin, 64)
	require.Equal(t, Numerics, f.Numerics)
	require.Contains(t, f.Flags, "--xla_cpu_max_isa=")
	require.Regexp(t, `^\S+ \d+ \d+$`, f.Processor)
	var back Fingerprint
	require.NoError(t, json.Unmarshal(f.JSON(), &back))
	require.Equal(t, f, back)
	back.Flags += " --x"
	require.NotEqual(t, f.ID(), back.ID())
	// Canonical: the keys are sorted.
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(f.JSON(), &keys))
	sorted, err := json.Marshal(keys)
	require.NoError(t, err)
	require.Equal(t, string(sorted), string(f.JSON()))
}

// A device of another build has another fingerprint, or one other program.
func TestOtherBuild(t *testing.T) {
	plugintest.Needs(t)
	of := func(other OtherBuild) (*Device, map[string]string) {
		d, err := OpenDevice(DeviceOptions{Other: other})
		require.NoError(t, err)
		t.Cleanup(d.Close)
		p, err := d.Programs(tiny(), nil, tinyShapes)
		require.NoError(t, err)
		h, err := p.Hashes()
		require.NoError(t, err)
		return d, h
	}
	present, hashes := of(OtherBuild{})
	newer, same := of(OtherBuild{Numerics: 1})
	require.Equal(t, Numerics+1, newer.Fingerprint().Numerics)
	require.NotEqual(t, present.Fingerprint().ID(), newer.Fingerprint().ID())
	require.Equal(t, hashes, same)

	changed, others := of(OtherBuild{Program: "forward"})
	require.Equal(t, present.Fingerprint(), changed.Fingerprint())
	for name, hash := range hashes {
		require.Equal(t, name != "forward", others[name] == hash, name)
	}
}

func TestDeviceKind(t *testing.T) {
	for in, want := range map[string]string{
		"TFRT_CPU_0 [processId=0]": "TFRT_CPU",
		"cpu:0 [processId=0]":      "cpu",
	} {
		require.Equal(t, want, described(in))
	}
	// The vendor's name, by which another plugin's devices are told apart.
	client, err := executable.Field[*pjrt.Client](testDevice(t).backend, "client")
	require.NoError(t, err)
	kind, err := executable.DeviceKind(client.AddressableDevices()[0])
	require.NoError(t, err)
	require.Equal(t, "cpu", kind)
}

// The kernel's words are those of a machine with NVIDIA's open module, and of an older one.
func TestDriverVersion(t *testing.T) {
	for said, want := range map[string]string{
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  \nGCC version:  gcc version 15.3.0 (GCC) \n": "580.159.04",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\nGCC version:  gcc version 11.4.0\n":                "535.54.03",
		"NVRM version: NVIDIA UNIX aarch64 Kernel Module  470.57  Thu":                                                                               "470.57",
		"nothing": "",
	} {
		require.Equal(t, want, kernelModule([]byte(said)))
	}
}

func TestOpenDeviceErrors(t *testing.T) {
	testDevice(t)
	_, err := OpenDevice(DeviceOptions{Plugin: "/nobody/plugin.so"})
	require.ErrorIs(t, err, ErrPlugin)
	require.ErrorContains(t, err, "/nobody/plugin.so")
	text := filepath.Join(t.TempDir(), "plugin.so")
	require.NoError(t, os.WriteFile(text, []byte("not a library"), 0o600))
	_, err = OpenDevice(DeviceOptions{Plugin: text})
	require.ErrorIs(t, err, ErrPlugin)
	require.ErrorContains(t, err, text)
	_, err = OpenDevice(DeviceOptions{XLAFlags: "--xla_cpu_max_isa=SSE4_2"})
	require.ErrorContains(t, err, "reads them once")
	t.Setenv(plugin.Env, "/nobody/else.so")
	_, err = OpenDevice(DeviceOptions{})
	require.ErrorContains(t, err, "/nobody/else.so")
}

func TestCloseEndsEverything(t *testing.T) {
	testDevice(t)
	d, err := OpenDevice(DeviceOptions{})
	require.NoError(t, err)
	p, err := d.Programs(tiny(), nil, Shapes{})
	require.NoError(t, err)
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	_, err = s.Fingerprint()
	require.NoError(t, err)
	d.Close()
	d.Close()
	_, err = s.Fingerprint()
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Download()
	require.ErrorIs(t, err, ErrClosed)
	_, err = p.NewState(tinyParams(tiny()))
	require.ErrorIs(t, err, ErrClosed)
	_, err = d.Programs(tiny(), nil, Shapes{})
	require.ErrorIs(t, err, ErrClosed)
	s.Free()
	p.Free()
}
