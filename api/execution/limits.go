package execution

import (
	"math"
	"strings"
	"time"
)

// ServerLimits is what a server allows, as GET /v1/limits shows it. Sizes are
// in bytes.
type ServerLimits struct {
	// Default is used where a request leaves a limit out, Maximum is the most
	// that it may ask for.
	Default Limits `json:"default"`
	Maximum Limits `json:"maximum"`
	// BodyBytes bounds a request's body. It has room for FileBytes in base64
	// beside 2 MiB of everything else.
	BodyBytes int64 `json:"body_bytes"`
	// Files and FileBytes bound the input files, all together.
	Files     int   `json:"files"`
	FileBytes int64 `json:"file_bytes"`
	// Artifacts and ArtifactBytes bound the artifacts of a result.
	Artifacts     int   `json:"artifacts"`
	ArtifactBytes int64 `json:"artifact_bytes"`
	// Results and ResultBytes bound the rich results of a result.
	Results     int   `json:"results"`
	ResultBytes int64 `json:"result_bytes"`
	// QueueSeconds is how long a request waits for a sandbox.
	QueueSeconds float64 `json:"queue_seconds"`
	// EventQueueSeconds is how long an event does: nobody looks on, and its
	// broker has only so many retries.
	EventQueueSeconds float64 `json:"event_queue_seconds"`
	// CPUs and Processes are what each sandbox has.
	CPUs      float64 `json:"cpus"`
	Processes int64   `json:"processes"`
	// Sessions is what sessions may ask for.
	Sessions SessionLimits `json:"sessions"`
}

// SessionLimits is what a server allows of sessions.
type SessionLimits struct {
	// Open bounds the sessions that are open at once, OpenPerPool those of
	// one pool.
	Open        int `json:"open"`
	OpenPerPool int `json:"open_per_pool"`
	// IdleSeconds and LifetimeSeconds are used where a request leaves them
	// out; the maxima are the most that it may ask for.
	IdleSeconds            float64 `json:"idle_seconds"`
	MaximumIdleSeconds     float64 `json:"maximum_idle_seconds"`
	LifetimeSeconds        float64 `json:"lifetime_seconds"`
	MaximumLifetimeSeconds float64 `json:"maximum_lifetime_seconds"`
	// FileBytes bounds one file that is sent to a session; what the sandbox has
	// on its disk bounds all of them.
	FileBytes int64 `json:"file_bytes"`
	// Listed is how many files a list shows at most.
	Listed int `json:"listed"`
}

// DefaultLimits are the limits of a server that is not configured.
func DefaultLimits() ServerLimits {
	const mib = 1 << 20
	return ServerLimits{
		Default:   Limits{TimeoutSeconds: 30, OutputBytes: mib, TotalOutputBytes: 64 * mib, MemoryBytes: 512 * mib},
		Maximum:   Limits{TimeoutSeconds: 300, OutputBytes: 16 * mib, TotalOutputBytes: 1024 * mib, MemoryBytes: 512 * mib},
		BodyBytes: 24 * mib, Files: 100, FileBytes: 16 * mib,
		Artifacts: 20, ArtifactBytes: 16 * mib, Results: 50, ResultBytes: 16 * mib,
		QueueSeconds: 10, EventQueueSeconds: 120, CPUs: 1, Processes: 128,
		Sessions: SessionLimits{
			Open: 24, OpenPerPool: 16, IdleSeconds: 600, MaximumIdleSeconds: 3600, LifetimeSeconds: 3600, MaximumLifetimeSeconds: 86400,
			FileBytes: 1024 * mib, Listed: 10000,
		},
	}
}

// BodyTooLarge is the problem of a body beyond BodyBytes.
func (s ServerLimits) BodyTooLarge() *Problem {
	return NewProblem(ProblemTooLarge, "The body exceeds %d bytes (body_bytes).", s.BodyBytes)
}

// Longest is the most that a request may wait for a sandbox and its program run.
func (s ServerLimits) Longest() time.Duration {
	return time.Duration((s.QueueSeconds + s.Maximum.TimeoutSeconds) * float64(time.Second))
}

// minMemory is the least memory in which the interpreters start, in bytes.
const minMemory = 32 << 20

// resolve returns the limits that a request for l gets, or a problem about the
// first one that is not allowed.
func (s ServerLimits) resolve(l Limits) (Limits, *Problem) {
	d, m := s.Default, s.Maximum
	switch {
	case l.TimeoutSeconds == 0:
		l.TimeoutSeconds = d.TimeoutSeconds
	case math.IsNaN(l.TimeoutSeconds) || l.TimeoutSeconds < 0.001 || l.TimeoutSeconds > m.TimeoutSeconds:
		return l, Invalid("limits.timeout_seconds", "The timeout must be from 0.001 to %g seconds (maximum.timeout_seconds).", m.TimeoutSeconds)
	}
	whole := []struct {
		field              string
		value              *int64
		standard, min, max int64
	}{
		{"limits.output_bytes", &l.OutputBytes, d.OutputBytes, 1, m.OutputBytes},
		{"limits.total_output_bytes", &l.TotalOutputBytes, d.TotalOutputBytes, 1, m.TotalOutputBytes},
		{"limits.memory_bytes", &l.MemoryBytes, d.MemoryBytes, minMemory, m.MemoryBytes},
	}
	for _, w := range whole {
		switch {
		case *w.value == 0:
			*w.value = w.standard
		case *w.value < w.min || *w.value > w.max:
			return l, Invalid(w.field, "The value must be from %d to %d bytes (maximum.%s).", w.min, w.max, strings.TrimPrefix(w.field, "limits."))
		}
	}
	return l, nil
}
