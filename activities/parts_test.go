package activities

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRestoreParts(t *testing.T) {
	took := Telemetry{
		CompileSeconds: 3, LowerSeconds: 0.3, CachedPrograms: 32, CachedSeconds: 2.7,
		LoadSeconds: 20.1, ReadSeconds: 3.3, HashSeconds: 1.2, UploadSeconds: 9.34, FingerprintSeconds: 8.06,
		Recomputed: 2, RecomputeSeconds: 30,
	}
	require.Equal(t, "programs 3.0 s (lowered in 0.3, 0 compiled, 32 from the cache in 2.7, self-test 0.0), "+
		"model 20.1 s (read in 3.3, hashed in 1.2, uploaded in 9.3, fingerprint in 8.1), "+
		"2 updates applied again in 30.0 s", took.RestoreParts())
}
