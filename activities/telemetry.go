package activities

import "cmp"

// Telemetry is what an attempt measured about itself. It stays outside the chain.
type Telemetry struct {
	// Seconds is the time the activity's own work took.
	Seconds float64 `json:"seconds"`
	// WaitSeconds is the time it waited for the device to be free.
	WaitSeconds float64 `json:"wait_seconds,omitempty"`
	// CompileSeconds is the part of Seconds spent on programs: lowering, compiling, taking
	// them from the cache, and testing them.
	CompileSeconds float64 `json:"compile_seconds,omitempty"`
	// LowerSeconds and SelfTestSeconds are the parts of CompileSeconds spent lowering and
	// testing the programs.
	LowerSeconds    float64 `json:"lower_seconds,omitempty"`
	SelfTestSeconds float64 `json:"self_test_seconds,omitempty"`
	// CompiledPrograms and CachedPrograms count the programs that were compiled, and those
	// that came from the worker's cache.
	CompiledPrograms int `json:"compiled_programs,omitempty"`
	CachedPrograms   int `json:"cached_programs,omitempty"`
	// CachedSeconds is the time that those from the cache took.
	CachedSeconds float64 `json:"cached_seconds,omitempty"`
	// CacheFaults counts programs whose file in the cache could not be used or written.
	CacheFaults int `json:"cache_faults,omitempty"`
	// LoadSeconds is the part of Seconds spent loading a stored model.
	LoadSeconds float64 `json:"load_seconds,omitempty"`
	// ReadSeconds, HashSeconds, UploadSeconds and FingerprintSeconds are the times for which
	// the model was read, hashed, copied to the device and fingerprinted. Reading and hashing
	// run ahead of the rest, so that all may be more than LoadSeconds together. Files of up to
	// 8 MiB are not in the first two.
	ReadSeconds        float64 `json:"read_seconds,omitempty"`
	HashSeconds        float64 `json:"hash_seconds,omitempty"`
	UploadSeconds      float64 `json:"upload_seconds,omitempty"`
	FingerprintSeconds float64 `json:"fingerprint_seconds,omitempty"`
	// Tokens counts the tokens computed or sampled.
	Tokens int `json:"tokens,omitempty"`
	// Recomputed counts updates applied again to rebuild a policy version, and those begun
	// again because their worker was lost between two pieces.
	Recomputed int `json:"recomputed,omitempty"`
	// RecomputeSeconds is the part of Seconds spent on what had been computed before.
	RecomputeSeconds float64 `json:"recompute_seconds,omitempty"`
	// PriceHour is the price of an hour of the device, in the worker's own currency; 0:
	// the worker was given none.
	PriceHour float64 `json:"price_hour,omitempty"`
}

// Plus is the sum of two attempts or of several steps; the price is the later one's.
func (t Telemetry) Plus(u Telemetry) Telemetry {
	t.Seconds += u.Seconds
	t.WaitSeconds += u.WaitSeconds
	t.CompileSeconds += u.CompileSeconds
	t.LowerSeconds += u.LowerSeconds
	t.SelfTestSeconds += u.SelfTestSeconds
	t.CompiledPrograms += u.CompiledPrograms
	t.CachedPrograms += u.CachedPrograms
	t.CachedSeconds += u.CachedSeconds
	t.CacheFaults += u.CacheFaults
	t.LoadSeconds += u.LoadSeconds
	t.ReadSeconds += u.ReadSeconds
	t.HashSeconds += u.HashSeconds
	t.UploadSeconds += u.UploadSeconds
	t.FingerprintSeconds += u.FingerprintSeconds
	t.Tokens += u.Tokens
	t.Recomputed += u.Recomputed
	t.RecomputeSeconds += u.RecomputeSeconds
	t.PriceHour = cmp.Or(u.PriceHour, t.PriceHour)
	return t
}
