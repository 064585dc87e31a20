// Package health says whether the loops that a controller lives by still turn:
// those that renew or try for its Leases, and those that watch objects. Neither
// Knative's electors nor informers say when they have stopped, but each loop asks
// the API server again and again. Whether the API server answers is not asked: a
// controller that cannot reach it would not be better for a restart.
package health

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// WatchSilence is the longest time between two requests of a watch: informers
// have the API server end each after ten minutes at most, and wait for a minute at
// most before the next.
const WatchSilence = 15 * time.Minute

// Loops knows when each loop last asked. The zero value is not usable, see New.
type Loops struct {
	leaseSilence time.Duration
	now          func() time.Time

	mu sync.Mutex
	// asked is when the loop of a Lease, or the watch of a path and its selectors,
	// last asked.
	asked map[loop]time.Time
}

type loop struct {
	kind, name string
}

const (
	kindLease = "lease"
	kindWatch = "watch"
)

// New returns Loops in which a Lease may be asked for no later than leaseSilence
// after the last time.
func New(leaseSilence time.Duration) *Loops {
	return &Loops{leaseSilence: leaseSilence, now: time.Now, asked: map[loop]time.Time{}}
}

// Wrap returns a transport that notes the loops' requests, for rest.Config.Wrap.
func (l *Loops) Wrap(next http.RoundTripper) http.RoundTripper { return transport{l, next} }

type transport struct {
	loops *Loops
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.loops.note(r)
	return t.next.RoundTrip(r)
}

func (l *Loops) note(r *http.Request) {
	x := loop{}
	if _, name, ok := strings.Cut(r.URL.Path, "/leases/"); ok && strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/") {
		x = loop{kindLease, name}
	} else if q := r.URL.Query(); q.Get("watch") == "true" || q.Get("watch") == "1" {
		x = loop{kindWatch, strings.Join([]string{r.URL.Path, q.Get("labelSelector"), q.Get("fieldSelector")}, " ")}
	} else {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[x] = l.now()
}

// Check returns an error that names the loops that have stopped. One that has
// never turned is not known.
func (l *Loops) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var stopped []string
	for x, at := range l.asked {
		most := WatchSilence
		if x.kind == kindLease {
			most = l.leaseSilence
		}
		if silent := l.now().Sub(at); silent > most {
			stopped = append(stopped, fmt.Sprintf("%s %s for %s", x.kind, strings.TrimSpace(x.name), silent.Round(time.Second)))
		}
	}
	if len(stopped) == 0 {
		return nil
	}
	slices.Sort(stopped)
	return fmt.Errorf("nobody has asked the API server for: %s", strings.Join(stopped, "; "))
}
