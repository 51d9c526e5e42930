package host

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// The error of a host worker without network says what to do instead; other errors of the hub do not.
func TestWithoutNetwork(t *testing.T) {
	_, err := net.Dial("tcp", "name.invalid:443")
	require.Error(t, err)
	for _, err := range []error{err, &net.DNSError{Err: "no such host", Name: "huggingface.co"}, &net.OpError{Op: "dial", Err: errors.New("network is unreachable")}} {
		require.Contains(t, withoutNetwork(fmt.Errorf("Get: %w", err)), "name it by folder:PATH")
	}
	require.Empty(t, withoutNetwork(errors.New("404 Not Found")))
}
