package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/chat"
	"github.com/preheat-dev/preheat/functions/execute/pool/runc"
)

// settings is the whole environment of this command: PREHEAT_ and the field's
// name in capitals, words separated by _.
type settings struct {
	LLM chat.LLM
	// Listen is host:port.
	Listen string `default:"127.0.0.1:8080"`
	// AllowedHosts and AllowedOrigins say which requests get through; by
	// default those for loopback names do.
	AllowedHosts   []string   `split_words:"true"`
	AllowedOrigins []string   `split_words:"true"`
	LogLevel       slog.Level `split_words:"true" default:"info"`
	// ShutdownGrace is how long requests may go on after SIGTERM.
	ShutdownGrace time.Duration `split_words:"true" default:"10s"`

	// PoolSize is how many sandboxes for Python and bash are kept warm,
	// JavascriptPoolSize how many for JavaScript.
	PoolSize           int `split_words:"true" default:"2"`
	JavascriptPoolSize int `split_words:"true" default:"1"`
	// WarmImports are modules that warm Python sandboxes have imported.
	WarmImports []string `split_words:"true"`
	// MaxSandboxes bounds the sandboxes of a pool, those in use included.
	MaxSandboxes int `split_words:"true" default:"32"`
	// SandboxMemoryMIB, SandboxCores and SandboxProcesses are what each
	// sandbox may use.
	SandboxMemoryMIB int64   `split_words:"true" default:"512"`
	SandboxCores     float64 `split_words:"true" default:"1"`
	SandboxProcesses int64   `split_words:"true" default:"128"`
	// Timeout and MaxTimeout bound a program's time, by default and at most;
	// QueueTimeout is how long a request waits for a sandbox, EventQueueTimeout
	// how long an event does that may be delivered again.
	Timeout           time.Duration `default:"30s"`
	MaxTimeout        time.Duration `split_words:"true" default:"300s"`
	QueueTimeout      time.Duration `split_words:"true" default:"10s"`
	EventQueueTimeout time.Duration `split_words:"true" default:"120s"`

	// StateDir holds what belongs to running sandboxes.
	StateDir string `split_words:"true"`
	// Runc, SandboxImage and RunnerDir are parts that the build made; by
	// default those beside this program.
	Runc         string
	SandboxImage string `split_words:"true"`
	RunnerDir    string `split_words:"true"`
}

// maxBody bounds a request to chat, in bytes; conversations may hold images.
const maxBody = 32 << 20

func readSettings() (settings, error) {
	var s settings
	if err := chat.ReadEnv(&s); err != nil {
		return s, err
	}
	if err := s.locate(); err != nil {
		return s, err
	}
	return s, s.validate()
}

// locate fills in where the parts are.
func (s *settings) locate() error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program's parts: %w", err)
	}
	build := filepath.Dir(filepath.Dir(exe))
	for value, standard := range map[*string]string{
		&s.Runc: filepath.Join(build, "bin", "runc"), &s.SandboxImage: filepath.Join(build, "sandbox"),
		&s.RunnerDir: filepath.Join(build, "runner"), &s.StateDir: stateDir(),
	} {
		if *value == "" {
			*value = standard
		}
	}
	for name, path := range map[string]*string{"PREHEAT_SANDBOX_IMAGE": &s.SandboxImage, "PREHEAT_RUNNER_DIR": &s.RunnerDir} {
		if *path, err = filepath.EvalSymlinks(*path); err != nil {
			return fmt.Errorf("%s: %w (make build makes it)", name, err)
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// stateDir is on a tmpfs on most hosts.
func stateDir() string {
	if os.Geteuid() == 0 {
		return "/run/preheat"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "preheat")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("preheat-%d", os.Getuid()))
}

func (s *settings) validate() error {
	switch {
	case s.PoolSize < 1 || s.PoolSize > s.MaxSandboxes:
		return fmt.Errorf("PREHEAT_POOL_SIZE must be from 1 to PREHEAT_MAX_SANDBOXES (%d)", s.MaxSandboxes)
	case s.JavascriptPoolSize < 0 || s.JavascriptPoolSize > s.MaxSandboxes:
		return fmt.Errorf("PREHEAT_JAVASCRIPT_POOL_SIZE must be from 0 to PREHEAT_MAX_SANDBOXES (%d)", s.MaxSandboxes)
	case s.SandboxMemoryMIB < 32:
		return errors.New("PREHEAT_SANDBOX_MEMORY_MIB must be 32 or more")
	case s.SandboxCores < 0.01:
		return errors.New("PREHEAT_SANDBOX_CORES must be 0.01 or more")
	case s.SandboxProcesses < 32:
		return errors.New("PREHEAT_SANDBOX_PROCESSES must be 32 or more")
	case s.Timeout <= 0 || s.MaxTimeout < s.Timeout:
		return errors.New("PREHEAT_TIMEOUT must be positive and not above PREHEAT_MAX_TIMEOUT")
	case s.QueueTimeout <= 0:
		return errors.New("PREHEAT_QUEUE_TIMEOUT must be positive")
	case s.EventQueueTimeout <= 0:
		return errors.New("PREHEAT_EVENT_QUEUE_TIMEOUT must be positive")
	}
	return nil
}

func (s *settings) limits() execution.ServerLimits {
	l := execution.DefaultLimits()
	l.Default.TimeoutSeconds, l.Maximum.TimeoutSeconds = s.Timeout.Seconds(), s.MaxTimeout.Seconds()
	l.Default.MemoryBytes, l.Maximum.MemoryBytes = s.SandboxMemoryMIB<<20, s.SandboxMemoryMIB<<20
	l.QueueSeconds, l.EventQueueSeconds = s.QueueTimeout.Seconds(), s.EventQueueTimeout.Seconds()
	l.CPUs, l.Processes = s.SandboxCores, s.SandboxProcesses
	return l
}

func (s *settings) pool() runc.Config {
	c := runc.Config{
		Runc: s.Runc, StateDir: s.StateDir, Image: s.SandboxImage, RunnerDir: s.RunnerDir,
		Pools: []runc.PoolConfig{{
			Name: "python", Size: s.PoolSize, Languages: []string{"python", "bash"}, Warm: []string{"python"}, Imports: s.WarmImports,
		}},
		Limits: runc.SandboxLimits{
			Memory: s.SandboxMemoryMIB << 20, Tmpfs: s.SandboxMemoryMIB << 18, CPUs: s.SandboxCores,
			Processes: s.SandboxProcesses, OpenFiles: 1024,
		},
		MaxSandboxes: s.MaxSandboxes, MaxCreating: 2, WarmTimeout: 30 * time.Second, MaxAge: time.Hour,
	}
	if s.JavascriptPoolSize > 0 {
		c.Pools = append(c.Pools, runc.PoolConfig{
			Name: "javascript", Size: s.JavascriptPoolSize, Languages: []string{"javascript"}, Warm: []string{"javascript"},
		})
	}
	return c
}
