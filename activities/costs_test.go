package activities

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddCosts(t *testing.T) {
	have := []Cost{{Kind: "L4", Held: 1}}
	sum := AddCosts(have, Cost{Kind: "L4", Held: 3, Lost: 1}, Cost{Kind: "H100", Held: 2, Money: 0.5})
	require.Equal(t, []Cost{{Kind: "H100", Held: 2, Money: 0.5}, {Kind: "L4", Held: 4, Lost: 1}}, sum)
	require.Equal(t, []Cost{{Kind: "L4", Held: 1}}, have, "what was given has not changed")
	all := Cost{Kind: "L4", Held: 1, Useful: 2, Recomputed: 3, Lost: 4, Waiting: 5, Money: 6, Unpriced: 7}
	require.Equal(t, Cost{Kind: "L4", Held: 2, Useful: 4, Recomputed: 6, Lost: 8, Waiting: 10, Money: 12, Unpriced: 14}, all.Plus(all))
}

func TestTelemetryPlus(t *testing.T) {
	sum := Telemetry{Seconds: 1, RecomputeSeconds: 2, PriceHour: 3}.Plus(Telemetry{Seconds: 1, RecomputeSeconds: 2, PriceHour: 4})
	require.Equal(t, Telemetry{Seconds: 2, RecomputeSeconds: 4, PriceHour: 4}, sum)
	require.Equal(t, 4.0, sum.Plus(Telemetry{}).PriceHour, "one that tells no price does not hide it")
}

func TestDeviceKind(t *testing.T) {
	for fields, want := range map[string]string{
		`{"device_kind": "NVIDIA H100", "platform": "cuda"}`: "NVIDIA H100", `{"platform": "cpu"}`: "cpu", `{}`: "", ``: "", `[]`: "",
	} {
		require.Equal(t, want, DeviceKind(json.RawMessage(fields)), fields)
	}
}
