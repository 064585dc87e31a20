package kube

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/session"
	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// index notes the session of a Pod, if it is one's. mu is held.
func (c *cache) index(pod *corev1.Pod) {
	if id, _, ok := session.Of(pod); ok {
		c.sessions[id] = pod
	}
}

// unindex forgets the session of a Pod that is gone. mu is held.
func (c *cache) unindex(pod *corev1.Pod) {
	if id, _, ok := session.Of(pod); ok && c.sessions[id] != nil && c.sessions[id].UID == pod.UID {
		delete(c.sessions, id)
	}
}

// session is the Pod of a session, or nil.
func (c *cache) session(id string) *corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// listSessions lists the open sessions, the oldest first.
func (c *cache) listSessions() []pool.SessionInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []pool.SessionInfo{}
	for _, pod := range c.sessions {
		if !ended(pod) {
			list = append(list, infoOf(pod))
		}
	}
	slices.SortFunc(list, func(a, b pool.SessionInfo) int {
		return cmp.Or(a.Opened.Compare(b.Opened), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// opening bounds the sessions that this process opens: each replica counts those
// that it sees and its own that are on their way, so that together they may
// open a few more at the same moment.
type opening struct {
	most, mostPerPool int

	mu sync.Mutex
	// pools are those of the sessions that are on their way, by their ids.
	pools map[string]string
}

// reserve takes a place for a session of a pool beside those that are open. done
// gives it back once the session is seen, or came to nothing.
func (o *opening) reserve(id, poolName string, open []pool.SessionInfo) (done func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	in := maps.Clone(o.pools)
	if in == nil {
		in, o.pools = map[string]string{}, map[string]string{}
	}
	for _, s := range open {
		in[s.ID] = s.Pool
	}
	own := 0
	for _, name := range in {
		if name == poolName {
			own++
		}
	}
	if len(in) >= o.most || own >= o.mostPerPool {
		return nil, fmt.Errorf("%w: %d in all, %d in pool %s", pool.ErrTooManySessions, len(in), own, poolName)
	}
	o.pools[id] = poolName
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.pools, id)
	}, nil
}
