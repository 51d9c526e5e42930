package activities

import "fmt"

// RestoreParts says in a line what a restore took its time for.
func (t Telemetry) RestoreParts() string {
	s := fmt.Sprintf("programs %.1f s (lowered in %.1f, %d compiled, %d from the cache in %.1f, self-test %.1f)",
		t.CompileSeconds, t.LowerSeconds, t.CompiledPrograms, t.CachedPrograms, t.CachedSeconds, t.SelfTestSeconds)
	s += fmt.Sprintf(", model %.1f s (read in %.1f, hashed in %.1f, uploaded in %.1f, fingerprint in %.1f)",
		t.LoadSeconds, t.ReadSeconds, t.HashSeconds, t.UploadSeconds, t.FingerprintSeconds)
	return s + fmt.Sprintf(", %d updates applied again in %.1f s", t.Recomputed, t.RecomputeSeconds)
}
