package dev

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nothing that the stack starts can be reached from another machine: every socket on
// which its servers listen, or those that they start, is on 127.0.0.1. Their ports of
// gRPC, the Web UI and S3 are known; what else they open is found in /proc.
func TestStackListensOnLoopbackOnly(t *testing.T) {
	// The caller's settings for a versitygw would make this one listen on all interfaces.
	for _, name := range []string{"VGW_PORT", "VGW_ADMIN_PORT", "VGW_WEBUI_PORT", "VGW_WEBSITE_PORT", "VGW_PPROF"} {
		free, err := freePort()
		require.NoError(t, err)
		t.Setenv(name, fmt.Sprintf(":%d", free))
	}
	stack := start(t, Options{Ephemeral: true})
	check := func() {
		t.Helper()
		var found []netip.AddrPort
		for _, c := range []*child{stack.temporal, stack.s3.child} {
			listening := listeners(t, c.pid)
			require.NotEmpty(t, listening, "the sockets of %s were not found", c.name)
			for _, at := range listening {
				require.Equal(t, "127.0.0.1", at.Addr().String(), "%s listens on %s: others can reach it", c.name, at)
			}
			found = append(found, listening...)
		}
		for _, known := range []string{stack.TemporalAddress(), strings.TrimPrefix(stack.UIURL(), "http://"), stack.S3().Endpoint} {
			require.Contains(t, found, netip.MustParseAddrPort(known))
		}
	}
	check()

	// The same holds for what comes back after a kill.
	require.NoError(t, stack.KillTemporal())
	require.NoError(t, stack.KillS3())
	require.NoError(t, stack.RestartTemporal(t.Context()))
	require.NoError(t, stack.RestartS3(t.Context()))
	check()

	// The method finds a socket on all interfaces, of either family.
	for network, address := range map[string]string{"tcp4": "0.0.0.0:0", "tcp6": "[::]:0"} {
		listener, err := net.Listen(network, address)
		if err != nil {
			require.Equal(t, "tcp6", network, "%v", err)
			continue // a machine without IPv6
		}
		at := listener.Addr().(*net.TCPAddr).AddrPort()
		require.Contains(t, socketsOf(t, os.Getpid()), netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
		require.NoError(t, listener.Close())
	}
}

// listeners are the addresses on which a child's processes listen: it leads a process
// group of its own.
func listeners(t *testing.T, group int) []netip.AddrPort {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	var out []netip.AddrPort
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may hold anything; state, parent and group follow.
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if len(fields) < 3 || fields[2] != strconv.Itoa(group) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		require.NoError(t, err)
		out = append(out, socketsOf(t, pid)...)
	}
	return out
}

// socketsOf are the addresses that a process listens on, TCP and UDP.
func socketsOf(t *testing.T, pid int) []netip.AddrPort {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	own := map[string]bool{}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(strings.TrimPrefix(target, "socket:"), "[]")] = true
		}
	}
	var out []netip.AddrPort
	// 0A is a listening TCP socket, 07 a UDP socket that is open to everybody.
	for table, state := range map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if os.IsNotExist(err) {
			continue // a machine without IPv6, or the process has ended
		}
		require.NoError(t, err)
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			// sl, local address, remote address, st, queues, tr, retrnsmt, uid, timeout, inode
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && fields[3] == state && own[fields[9]] {
				out = append(out, addrPort(t, fields[1]))
			}
		}
		require.NoError(t, lines.Err())
		require.NoError(t, file.Close())
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out
}

// addrPort reads an address of /proc/net: words of 32 bits as the machine keeps them,
// in hexadecimal, a colon, and the port.
func addrPort(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	address, port, ok := strings.Cut(text, ":")
	require.True(t, ok, text)
	words, err := hex.DecodeString(address)
	require.NoError(t, err, text)
	for i := 0; i+4 <= len(words); i += 4 {
		binary.NativeEndian.PutUint32(words[i:], binary.BigEndian.Uint32(words[i:]))
	}
	ip, ok := netip.AddrFromSlice(words)
	require.True(t, ok, text)
	number, err := strconv.ParseUint(port, 16, 16)
	require.NoError(t, err, text)
	return netip.AddrPortFrom(ip.Unmap(), uint16(number))
}

func TestAddrPort(t *testing.T) {
	one := "0100007F"
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		one = "7F000001"
	}
	require.Equal(t, netip.MustParseAddrPort("127.0.0.1:7233"), addrPort(t, one+":1C41"))
	require.Equal(t, netip.MustParseAddrPort("0.0.0.0:80"), addrPort(t, "00000000:0050"))
	require.Equal(t, netip.MustParseAddrPort("[::]:80"), addrPort(t, strings.Repeat("0", 32)+":0050"))
}

// The children's arguments say where to listen: every address among them is 127.0.0.1,
// and none is left to the servers' defaults.
func TestChildrenAreToldLoopback(t *testing.T) {
	temporal := temporalChild("temporal", t.TempDir(), 11111, 22222, true, true)
	s3, err := versityChild("versitygw", t.TempDir(), 33333, "key", "secret")
	require.NoError(t, err)
	after := func(c *child, flag string) string {
		at := slices.Index(c.arguments, flag)
		require.GreaterOrEqual(t, at, 0, "%s is not told %s", c.name, flag)
		require.Less(t, at+1, len(c.arguments))
		require.Equal(t, at, len(c.arguments)-1-slices.Index(reversed(c.arguments), flag), "%s is told %s twice", c.name, flag)
		return c.arguments[at+1]
	}
	require.Equal(t, "127.0.0.1", after(temporal, "--ip"))
	require.Equal(t, "11111", after(temporal, "--port"))
	require.Equal(t, "22222", after(temporal, "--ui-port"))
	require.Equal(t, "127.0.0.1:33333", after(s3, "--port"))
	for _, c := range []*child{temporal, s3} {
		for _, argument := range c.arguments {
			_, value, _ := strings.Cut(argument, "=")
			for _, text := range []string{argument, value} {
				if ip, err := netip.ParseAddr(text); err == nil {
					require.Equal(t, "127.0.0.1", ip.String(), "%s: %s", c.name, argument)
				}
				if at, _, err := net.SplitHostPort(text); err == nil {
					require.Equal(t, "127.0.0.1", at, "%s: %s", c.name, argument)
				}
				require.NotEqual(t, "localhost", text, "%s: a name may mean another address", c.name)
			}
		}
	}
}

func reversed(words []string) []string {
	out := slices.Clone(words)
	slices.Reverse(out)
	return out
}
