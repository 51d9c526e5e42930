package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// RopeScaling is the scaling of rotary positions that Llama 3.1 introduced (rope_type
// "llama3"). Its zero value scales nothing.
type RopeScaling struct {
	// Factor divides the frequencies whose wavelength is above OriginalPositions / LowFrequency.
	// Those below OriginalPositions / HighFrequency stay, and those between are interpolated.
	Factor        float64
	LowFrequency  float64
	HighFrequency float64
	// OriginalPositions is the length of context that the model was first trained with.
	OriginalPositions int
}

// json is the scaling as a rope object of config.json with its base.
func (s RopeScaling) json(theta float64) map[string]any {
	if s == (RopeScaling{}) {
		return map[string]any{"rope_theta": floatJSON(theta), "rope_type": "default"}
	}
	return map[string]any{
		"rope_theta": floatJSON(theta), "rope_type": "llama3",
		"factor": floatJSON(s.Factor), "low_freq_factor": floatJSON(s.LowFrequency), "high_freq_factor": floatJSON(s.HighFrequency),
		"original_max_position_embeddings": s.OriginalPositions,
	}
}

// rope reads the base and the scaling from the fields rope_theta, rope_scaling and
// rope_parameters. config.json has either of the objects, or both with one meaning.
func (r *rawConfig) rope(c *Config, problem func(string, ...any)) {
	if r.RopeTheta != nil {
		c.RopeTheta = *r.RopeTheta
	}
	both := present(r.RopeScaling) && present(r.RopeParameters)
	c.RopeScaling = r.ropeObject(r.RopeScaling, "rope_scaling", c, problem)
	if scaling := r.ropeObject(r.RopeParameters, "rope_parameters", c, problem); !both {
		c.RopeScaling = cmp.Or(c.RopeScaling, scaling)
	} else if scaling != c.RopeScaling {
		problem("rope_scaling and rope_parameters differ")
	}
	if !(c.RopeTheta > 0) {
		problem("rope_theta is %v, must be positive", c.RopeTheta)
	}
}

// ropeObject reads a rope object: its base into c, and its scaling.
func (r *rawConfig) ropeObject(raw json.RawMessage, field string, c *Config, problem func(string, ...any)) (s RopeScaling) {
	if !present(raw) {
		return s
	}
	var rope struct {
		Theta    *float64 `json:"rope_theta"`
		Type     string   `json:"rope_type"`
		TypeOld  string   `json:"type"`
		Factor   *float64 `json:"factor"`
		Low      *float64 `json:"low_freq_factor"`
		High     *float64 `json:"high_freq_factor"`
		Original *int     `json:"original_max_position_embeddings"`
		Partial  *float64 `json:"partial_rotary_factor"`
		Sections []int    `json:"mrope_section"`
	}
	if err := json.Unmarshal(raw, &rope); err != nil {
		problem("%s: %v", field, err)
		return s
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // it was read before
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name][0] == '{' {
			problem("%s has an object %.40q: rotary positions that differ by layer are not supported", field, name)
		}
	}
	if rope.Theta != nil {
		c.RopeTheta = *rope.Theta
	}
	if rope.Partial != nil && *rope.Partial != 1 {
		problem("%s has partial_rotary_factor %v, only 1 is supported", field, *rope.Partial)
	}
	if rope.Sections != nil {
		problem("%s has mrope_section: multimodal positions are not supported", field)
	}
	allowed := "only \"default\" is supported"
	if c.family().llama3 {
		allowed = "only \"default\" and \"llama3\" are supported"
	}
	scaled := false
	for _, t := range []string{rope.Type, rope.TypeOld} {
		switch {
		case t == "" || t == "default":
		case t == "llama3" && c.family().llama3:
			scaled = true
		default:
			problem("%s has rope_type %q: %s for model_type %q", field, t, allowed, c.family().modelType)
		}
	}
	if !scaled {
		if rope.Factor != nil && *rope.Factor != 1 {
			problem("%s has factor %v without a rope_type that scales", field, *rope.Factor)
		}
		return s
	}
	positive := func(name string, v *float64) float64 {
		if v == nil || !(*v > 0) || *v > 1e9 {
			problem("%s needs a positive %s up to 1e9", field, name)
			return 1
		}
		return *v
	}
	s = RopeScaling{
		Factor: positive("factor", rope.Factor), LowFrequency: positive("low_freq_factor", rope.Low),
		HighFrequency: positive("high_freq_factor", rope.High), OriginalPositions: c.MaxPositions,
	}
	for _, v := range []*int{rope.Original, r.OriginalPositions} { // the latter wins, as in transformers
		if v != nil {
			s.OriginalPositions = *v
		}
	}
	if s.OriginalPositions < 1 || s.OriginalPositions > maxSize {
		problem("%s has original_max_position_embeddings %d, must be from 1 to 2^30", field, s.OriginalPositions)
	}
	if !(s.HighFrequency > s.LowFrequency) {
		problem("%s has high_freq_factor %v, must be above low_freq_factor %v", field, s.HighFrequency, s.LowFrequency)
	}
	return s
}

// inverseFrequency is that of pair i of a head's numbers, before scaling.
func (c Config) inverseFrequency(i int) float32 {
	if c.family().asTransformers {
		return 1 / float32(math.Pow(c.RopeTheta, float64(float32(2*i)/float32(c.HeadDim))))
	}
	return float32(1 / math.Pow(c.RopeTheta, float64(2*i)/float64(c.HeadDim)))
}

// scale scales an inverse frequency. Every step is rounded to float32, as in transformers.
func (s RopeScaling) scale(inv float32) float32 {
	if s == (RopeScaling{}) {
		return inv
	}
	factor, low, original := float32(s.Factor), float32(s.LowFrequency), float32(s.OriginalPositions)
	wavelength := float32(2*math.Pi) / inv
	switch {
	case wavelength < float32(float64(s.OriginalPositions)/s.HighFrequency):
		return inv
	case wavelength > float32(float64(s.OriginalPositions)/s.LowFrequency):
		return inv / factor
	}
	smooth := (original/wavelength - low) / float32(s.HighFrequency-s.LowFrequency)
	return float32(float32((1-smooth)*inv)/factor) + float32(smooth*inv)
}

// ropeTables computes the cosines and sines for positions 0 to n−1, each [n,
// HeadDim/2]. Angles are products of float32 numbers, as in transformers. The tables are
// computed on the host and are inputs of the programs, so all devices use the same.
func ropeTables(c Config, n int) (cos, sin []float32) {
	half := c.HeadDim / 2
	cos, sin = make([]float32, n*half), make([]float32, n*half)
	for i := range half {
		inv := c.RopeScaling.scale(c.inverseFrequency(i))
		for p := range n {
			angle := float64(float32(p) * inv)
			cos[p*half+i] = float32(math.Cos(angle))
			sin[p*half+i] = float32(math.Sin(angle))
		}
	}
	return cos, sin
}
