package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// The places of all objects. Branches count from 0; iterations from 0, in at least six
// digits so that keys sort as numbers do; policy version n is the state before iteration
// n.

// maxSegment is the most bytes of an encoded id: what is longer is shortened
// with a hash, since file systems and S3 bound names.
const maxSegment = 80

// EscapeSegment makes an id (a workflow's, a sweep's) one safe segment of a key:
// letters, digits, '-', '_', and single inner dots stay; every other byte is
// percent-encoded. A longer result than 80 bytes is cut and ends in '~' and 16 hex digits
// of the id's SHA-256. Different ids give different segments.
func EscapeSegment(id string) string {
	var b strings.Builder
	if id == "" {
		return "%" // no other id gives a bare percent sign
	}
	for i := range len(id) {
		c := id[i]
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
		// A dot at the beginning or after another would make hidden names and "..".
		plain = plain || c == '.' && i > 0 && id[i-1] != '.'
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	full := b.String()
	if len(full) <= maxSegment {
		return full
	}
	sum := sha256.Sum256([]byte(id))
	cut := maxSegment - 17
	for i := max(0, cut-2); i < cut; i++ { // never through the middle of a %XX
		if full[i] == '%' {
			cut = i
			break
		}
	}
	return full[:cut] + "~" + hex.EncodeToString(sum[:8])
}

// UnescapeSegment gives the id of a segment, or false if the segment is a
// shortened one (which only its spec can resolve) or not one at all.
func UnescapeSegment(segment string) (string, bool) {
	if segment == "%" {
		return "", true
	}
	if strings.Contains(segment, "~") {
		return "", false
	}
	id, err := url.PathUnescape(segment)
	if err != nil || EscapeSegment(id) != segment {
		return "", false
	}
	return id, true
}

// RunsDir holds all runs.
const RunsDir = "runs"

// RunDir is a run's folder: "runs/RUN".
func RunDir(run string) string { return RunsDir + "/" + EscapeSegment(run) }

// SpecKey is the resolved spec's fixed key: "runs/RUN/spec.json".
func SpecKey(run string) string { return RunDir(run) + "/spec.json" }

// BranchDir is a branch's folder: "runs/RUN/b0".
func BranchDir(run string, branch int) string { return RunDir(run) + "/b" + strconv.Itoa(branch) }

// IterationsDir holds a branch's iterations: "runs/RUN/b0/iterations".
func IterationsDir(run string, branch int) string { return BranchDir(run, branch) + "/iterations" }

// IterationDir is an iteration's folder: "runs/RUN/b0/iterations/000012".
func IterationDir(run string, branch, iteration int) string {
	return IterationsDir(run, branch) + "/" + number(iteration)
}

// ManifestKey is an iteration's commit: "runs/RUN/b0/iterations/000012/manifest.json".
func ManifestKey(run string, branch, iteration int) string {
	return IterationDir(run, branch, iteration) + "/manifest.json"
}

// SnapshotPrefix is the beginning of a snapshot's folder, for [PutFolder]:
// "runs/RUN/b0/snapshots/000010.".
func SnapshotPrefix(run string, branch, version int) string {
	return BranchDir(run, branch) + "/snapshots/" + number(version) + "."
}

// EvaluationDir holds the evaluation of a policy version:
// "runs/RUN/b0/evaluations/000010".
func EvaluationDir(run string, branch, version int) string {
	return BranchDir(run, branch) + "/evaluations/" + number(version)
}

// ApartDir holds what an Evaluate workflow made: evaluations/ID. It belongs to no run.
func ApartDir(id string) string { return "evaluations/" + EscapeSegment(id) }

// TelemetryDir holds what differs between attempts (timings, attempts, hosts),
// outside the chain: "runs/RUN/telemetry".
func TelemetryDir(run string) string { return RunDir(run) + "/telemetry" }

// ReportDir holds a run's report: "runs/RUN/report".
func ReportDir(run string) string { return RunDir(run) + "/report" }

// ModelPrefix is the beginning of a base model's folder, for [PutFolder].
const ModelPrefix = "models/"

// ProgramsFolder holds compiled programs that workers share, signed. They are a cache: no manifest names one.
const ProgramsFolder = "programs"

// ProgramsDir holds those that were signed by a key: "programs/KEY".
func ProgramsDir(key string) string { return ProgramsFolder + "/" + EscapeSegment(key) }

// SweepDir is a sweep's folder: "sweeps/SWEEP".
func SweepDir(sweep string) string { return "sweeps/" + EscapeSegment(sweep) }

// SweepReportDir holds a sweep's report: "sweeps/SWEEP/report".
func SweepReportDir(sweep string) string { return SweepDir(sweep) + "/report" }

func number(n int) string { return fmt.Sprintf("%06d", n) }

// parseNumber reads what number writes, and nothing else.
func parseNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && number(n) == s
}

// parseBranch reads a branch's folder name, "b0".
func parseBranch(s string) (int, bool) {
	rest, ok := strings.CutPrefix(s, "b")
	n, err := strconv.Atoi(rest)
	return n, ok && err == nil && n >= 0 && "b"+strconv.Itoa(n) == s
}
