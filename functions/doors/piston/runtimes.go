package piston

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/preheat-dev/preheat/api/execution"
)

// fresh is how long a list of languages is given again.
const fresh = 5 * time.Second

// runtime is one entry of GET /runtimes.
type runtime struct {
	Language string   `json:"language"`
	Version  string   `json:"version"`
	Aliases  []string `json:"aliases"`
}

// runtimes are the languages that the pools offer now.
type runtimes struct {
	read func(context.Context) ([]execution.Language, error)
	now  func() time.Time

	mu   sync.Mutex
	at   time.Time
	last []runtime
}

func newRuntimes(read func(context.Context) ([]execution.Language, error)) *runtimes {
	return &runtimes{read: read, now: time.Now}
}

// list returns the runtimes, which must not be changed.
func (r *runtimes) list(ctx context.Context) ([]runtime, error) {
	r.mu.Lock()
	last, at := r.last, r.at
	r.mu.Unlock()
	if last != nil && r.now().Sub(at) < fresh {
		return last, nil
	}
	languages, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]runtime, 0, len(languages))
	for _, l := range languages {
		version := l.Version
		if _, err := semver.NewVersion(version); err != nil {
			version = "0.0.0" // clients compare versions
		}
		list = append(list, runtime{Language: l.Name, Version: version, Aliases: append([]string{}, l.Aliases...)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.at = list, r.now()
	return list, nil
}

// find returns the runtime of a name or alias whose version is in a range such
// as 3.x.
func (r *runtimes) find(ctx context.Context, name, version string) (runtime, error) {
	all, err := r.list(ctx)
	if err != nil {
		return runtime{}, err
	}
	unknown := bad("%.64s-%.64s runtime is unknown", name, version)
	wanted, err := semver.NewConstraint(version)
	if err != nil {
		return runtime{}, unknown
	}
	for _, l := range all {
		if l.Language != name && !slices.Contains(l.Aliases, name) {
			continue
		}
		if v, err := semver.NewVersion(l.Version); err == nil && wanted.Check(v) {
			return l, nil
		}
	}
	return runtime{}, unknown
}
