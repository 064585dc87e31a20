package local

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/internal/plan"
)

// Config is how the pools are set up.
type Config struct {
	Pools []PoolConfig
	// MaxSandboxes bounds the sandboxes of a pool that exist at once, those
	// in use and those being destroyed included.
	MaxSandboxes int
	// MaxCreating bounds the sandboxes of a pool that are made at once.
	MaxCreating int
	// WarmTimeout bounds how long it may take to make one.
	WarmTimeout time.Duration
	// MaxAge is the age at which a warm sandbox is replaced; 0 means never.
	MaxAge time.Duration
	// MaxSessions bounds the sessions that are open at once, MaxPoolSessions
	// those of one pool.
	MaxSessions, MaxPoolSessions int
}

// PoolConfig is one warm pool.
type PoolConfig struct {
	Name string
	// Size is the number of warm sandboxes to keep.
	Size      int
	Languages []string
	// Aliases are other names of Languages, beside those of package language.
	Aliases map[string][]string
	// Warm names the languages whose interpreters are started ahead.
	Warm []string
	// Imports are modules that a warm Python has imported.
	Imports []string
}

// Validate reports the first thing that is wrong with c.
func (c *Config) Validate() error {
	if len(c.Pools) == 0 {
		return errors.New("no pools")
	}
	seen := map[string]bool{}
	for _, p := range c.Pools {
		switch {
		case p.Name == "" || strings.ContainsFunc(p.Name, notNameRune) || len(p.Name) > 40:
			return fmt.Errorf("pool %q: a name has 1 to 40 letters, digits and dashes", p.Name)
		case seen[p.Name]:
			return fmt.Errorf("pool %q is there twice", p.Name)
		case p.Size < 0 || p.Size > c.MaxSandboxes:
			return fmt.Errorf("pool %q: a size of %d is not within 0 and %d", p.Name, p.Size, c.MaxSandboxes)
		case len(p.Languages) == 0:
			return fmt.Errorf("pool %q has no languages", p.Name)
		}
		seen[p.Name] = true
		for _, name := range p.Languages {
			if name != strings.ToLower(name) {
				return fmt.Errorf("pool %q: the name of the language %q must be in lower case", p.Name, name)
			}
		}
		for name := range p.Aliases {
			if !slices.Contains(p.Languages, name) {
				return fmt.Errorf("pool %q has aliases for %q, which it does not offer", p.Name, name)
			}
		}
	}
	if _, conflicts := pool.MergeLanguages(c.describe()); len(conflicts) > 0 {
		return errors.New(conflicts[0].String())
	}
	return nil
}

// describe lists each pool's languages.
func (c *Config) describe() []execution.Language {
	var out []execution.Language
	for _, p := range c.Pools {
		for _, name := range p.Languages {
			out = append(out, execution.Language{
				Name: name, Aliases: p.Aliases[name], Warm: slices.Contains(p.Warm, name), Pools: []string{p.Name},
			})
		}
	}
	return out
}

func notNameRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
}

// quietPeriod is longer than most programs take. See plan.State.Lull.
const quietPeriod = 25 * time.Millisecond

// state is the part of plan.State that does not change.
func (c *Config) state(p PoolConfig) plan.State {
	return plan.State{
		Size: plan.Size{Replicas: p.Size}, Limit: c.MaxSandboxes, MaxCreating: c.MaxCreating,
		WarmTimeout: c.WarmTimeout, MaxAge: c.MaxAge, Lull: quietPeriod,
	}
}
