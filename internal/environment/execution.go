package environment

import (
	"errors"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// Execution is what programs may use and how long callers wait.
type Execution struct {
	// Timeout and MaxTimeout bound a program's time, by default and at most.
	Timeout    time.Duration `envDefault:"30s"`
	MaxTimeout time.Duration `envDefault:"300s"`
	// QueueTimeout is how long a request waits for a sandbox, EventQueueTimeout
	// how long an event does that may be delivered again.
	QueueTimeout      time.Duration `envDefault:"10s"`
	EventQueueTimeout time.Duration `envDefault:"120s"`
	// SandboxMemoryMIB, SandboxCores and SandboxProcesses are what each sandbox
	// may use. On a cluster they repeat what the pools' templates say.
	SandboxMemoryMIB int64   `envDefault:"512"`
	SandboxCores     float64 `envDefault:"1"`
	SandboxProcesses int64   `envDefault:"128"`
	// MaxSessions bounds the sessions that are open at once, MaxPoolSessions
	// those of one pool.
	MaxSessions     int `envDefault:"24"`
	MaxPoolSessions int `envDefault:"16"`
	// SessionIdle and MaxSessionIdle are how long a session stays unused, by
	// default and at most, SessionLifetime and MaxSessionLifetime how long it
	// stays at all.
	SessionIdle        time.Duration `envDefault:"10m"`
	MaxSessionIdle     time.Duration `envDefault:"1h"`
	SessionLifetime    time.Duration `envDefault:"1h"`
	MaxSessionLifetime time.Duration `envDefault:"24h"`
	// SessionFileMIB bounds one file that is sent to a session.
	SessionFileMIB int64 `envDefault:"1024"`
}

// Validate returns an error that names a variable whose value cannot be.
func (e Execution) Validate() error {
	switch {
	case e.Timeout <= 0 || e.MaxTimeout < e.Timeout:
		return errors.New("PREHEAT_TIMEOUT must be positive and not above PREHEAT_MAX_TIMEOUT")
	case e.QueueTimeout <= 0:
		return errors.New("PREHEAT_QUEUE_TIMEOUT must be positive")
	case e.EventQueueTimeout <= 0:
		return errors.New("PREHEAT_EVENT_QUEUE_TIMEOUT must be positive")
	case e.SandboxMemoryMIB < 32:
		return errors.New("PREHEAT_SANDBOX_MEMORY_MIB must be 32 or more")
	case e.SandboxCores < 0.01:
		return errors.New("PREHEAT_SANDBOX_CORES must be 0.01 or more")
	case e.SandboxProcesses < 32:
		return errors.New("PREHEAT_SANDBOX_PROCESSES must be 32 or more")
	}
	return e.validateSessions()
}

func (e Execution) validateSessions() error {
	switch {
	case e.MaxSessions < 0:
		return errors.New("PREHEAT_MAX_SESSIONS must not be negative")
	case e.MaxPoolSessions < 0 || e.MaxPoolSessions > e.MaxSessions:
		return errors.New("PREHEAT_MAX_POOL_SESSIONS must be from 0 to PREHEAT_MAX_SESSIONS")
	case e.SessionIdle < time.Second || e.MaxSessionIdle < e.SessionIdle:
		return errors.New("PREHEAT_SESSION_IDLE must be 1s or more and not above PREHEAT_MAX_SESSION_IDLE")
	case e.SessionLifetime < time.Second || e.MaxSessionLifetime < e.SessionLifetime:
		return errors.New("PREHEAT_SESSION_LIFETIME must be 1s or more and not above PREHEAT_MAX_SESSION_LIFETIME")
	case e.SessionFileMIB < 1:
		return errors.New("PREHEAT_SESSION_FILE_MIB must be 1 or more")
	}
	return nil
}

// Limits returns what a request may ask for.
func (e Execution) Limits() execution.ServerLimits {
	l := execution.DefaultLimits()
	l.Default.TimeoutSeconds, l.Maximum.TimeoutSeconds = e.Timeout.Seconds(), e.MaxTimeout.Seconds()
	l.Default.MemoryBytes, l.Maximum.MemoryBytes = e.SandboxMemoryMIB<<20, e.SandboxMemoryMIB<<20
	l.QueueSeconds, l.EventQueueSeconds = e.QueueTimeout.Seconds(), e.EventQueueTimeout.Seconds()
	l.CPUs, l.Processes = e.SandboxCores, e.SandboxProcesses
	s := &l.Sessions
	s.Open, s.OpenPerPool, s.FileBytes = e.MaxSessions, e.MaxPoolSessions, e.SessionFileMIB<<20
	s.IdleSeconds, s.MaximumIdleSeconds = e.SessionIdle.Seconds(), e.MaxSessionIdle.Seconds()
	s.LifetimeSeconds, s.MaximumLifetimeSeconds = e.SessionLifetime.Seconds(), e.MaxSessionLifetime.Seconds()
	return l
}
