package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/preheat-dev/preheat/functions/chat"
	"github.com/preheat-dev/preheat/functions/doors"
	"github.com/preheat-dev/preheat/functions/execute/pool/local"
	"github.com/preheat-dev/preheat/functions/execute/pool/runc"
	"github.com/preheat-dev/preheat/internal/environment"
)

// settings is the whole environment of this command.
type settings struct {
	environment.Server
	environment.Execution
	doors.Settings
	LLM chat.LLM `envPrefix:"LLM_"`

	// PoolSize is how many sandboxes for Python and bash are kept warm,
	// JavascriptPoolSize how many for JavaScript.
	PoolSize           int `envDefault:"2"`
	JavascriptPoolSize int `envDefault:"1"`
	// WarmImports are modules that warm Python sandboxes have imported.
	WarmImports []string
	// MaxSandboxes bounds the sandboxes of a pool, those in use included.
	MaxSandboxes int `envDefault:"32"`
	// StateDir holds what belongs to running sandboxes.
	StateDir string
	// Runtime makes the sandboxes: runc, or gVisor's runsc.
	Runtime runc.Runtime `envDefault:"runc"`
	// Runc, Runsc, SandboxImage and RunnerDir are parts that the build made; by
	// default those beside this program.
	Runc         string
	Runsc        string
	SandboxImage string
	RunnerDir    string
}

// maxBody bounds a request to chat, in bytes; conversations may hold images.
const maxBody = 32 << 20

func readSettings() (settings, error) {
	var s settings
	if err := environment.Read(&s); err != nil {
		return s, err
	}
	s.Listen = cmp.Or(s.Listen, "127.0.0.1:8080") // whatever PORT says
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
		&s.Runc: filepath.Join(build, "bin", "runc"), &s.Runsc: filepath.Join(build, "bin", "runsc"), &s.SandboxImage: filepath.Join(build, "sandbox"),
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
	case s.Runtime != runc.Runc && s.Runtime != runc.Runsc:
		return fmt.Errorf("PREHEAT_RUNTIME must be %s or %s", runc.Runc, runc.Runsc)
	case s.PoolSize < 1 || s.PoolSize > s.MaxSandboxes:
		return fmt.Errorf("PREHEAT_POOL_SIZE must be from 1 to PREHEAT_MAX_SANDBOXES (%d)", s.MaxSandboxes)
	case s.JavascriptPoolSize < 0 || s.JavascriptPoolSize > s.MaxSandboxes:
		return fmt.Errorf("PREHEAT_JAVASCRIPT_POOL_SIZE must be from 0 to PREHEAT_MAX_SANDBOXES (%d)", s.MaxSandboxes)
	}
	return s.Execution.Validate()
}

// sandboxes is how sandboxes are made, pools how many of which kind.
func (s *settings) sandboxes() runc.Config {
	binary := map[runc.Runtime]string{runc.Runc: s.Runc, runc.Runsc: s.Runsc}[s.Runtime]
	return runc.Config{
		Runtime: s.Runtime, Binary: binary, StateDir: s.StateDir, Image: s.SandboxImage, RunnerDir: s.RunnerDir,
		Sandboxes: len(s.pools().Pools) * s.MaxSandboxes,
		Limits: runc.SandboxLimits{
			Memory: s.SandboxMemoryMIB << 20, Tmpfs: s.SandboxMemoryMIB << 18, CPUs: s.SandboxCores,
			Processes: s.SandboxProcesses, OpenFiles: 1024,
		},
	}
}

func (s *settings) pools() local.Config {
	c := local.Config{
		Pools: []local.PoolConfig{{
			Name: "python", Size: s.PoolSize, Languages: []string{"python", "bash"}, Warm: []string{"python"}, Imports: s.WarmImports,
		}},
		MaxSandboxes: s.MaxSandboxes, MaxCreating: 2, WarmTimeout: 30 * time.Second, MaxAge: time.Hour,
		MaxSessions: s.MaxSessions, MaxPoolSessions: s.MaxPoolSessions,
	}
	if s.JavascriptPoolSize > 0 {
		c.Pools = append(c.Pools, local.PoolConfig{
			Name: "javascript", Size: s.JavascriptPoolSize, Languages: []string{"javascript"}, Warm: []string{"javascript"},
		})
	}
	return c
}
