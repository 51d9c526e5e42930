package dev

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"time"
)

// ErrPortInUse: another program listens on a requested port.
var ErrPortInUse = errors.New("port in use")

const host = "127.0.0.1"

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// wanted is a port that a server of the stack needs.
type wanted struct {
	port int    // 0: any
	who  string // the server, in words
	flag string // what changes it
}

// claim returns the port to use: the requested one, if it is free or becomes free within
// half a second (a stack that was killed a moment ago may still be ending), or a free one
// that is not among taken.
func (w wanted) claim(taken ...int) (int, error) {
	if w.port == 0 {
		return freePort(taken...)
	}
	if slices.Contains(taken, w.port) {
		return 0, fmt.Errorf("%w: %d is asked for twice; the %s takes another with --%s", ErrPortInUse, w.port, w.who, w.flag)
	}
	deadline := time.Now().Add(500 * time.Millisecond)
	for {
		err := portFree(w.port)
		if err == nil {
			return w.port, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("%w: the %s needs port %d on %s (%w); end what listens there, or choose another port with --%s",
				ErrPortInUse, w.who, w.port, host, err, w.flag)
		}
		time.Sleep(25 * time.Millisecond)
	}
}

func portFree(port int) error {
	listener, err := net.Listen("tcp4", address(port))
	if err != nil {
		return err
	}
	return listener.Close()
}

// freePort picks a port below the range that the kernel gives to outgoing
// connections. If ports were inside it, a client that dials a stopped server could be
// given the server's own port and connect to itself, and a killed server might not get
// its port back.
func freePort(taken ...int) (int, error) {
	const low = 10240
	high := 32768
	if content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var first, last int
		if n, _ := fmt.Sscan(string(content), &first, &last); n == 2 && first > low+1000 {
			high = first
		}
	}
	var last error
search:
	for range 200 {
		port := low + rand.IntN(high-low)
		for _, other := range taken {
			if port == other {
				continue search
			}
		}
		if last = portFree(port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port on %s: %w", host, last)
}
