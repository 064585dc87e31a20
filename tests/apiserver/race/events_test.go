package race_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
)

// eventNames is how many names the events have: few, so that a name comes again
// while the controller has not yet seen the end of the claim before.
const eventNames = 32

// events are delivered by all claimants, again and again, and by several at once.
type events struct {
	claims atomic.Int64
	// running says of each name whether its program runs now.
	running [eventNames]atomic.Bool
}

// deliver delivers an event. Most of them are forgotten at once, so that they run
// again; the others are answered, and forgotten after a while.
func (e *events) deliver(ctx context.Context, r *race, p *kube.Pool, claimant string) {
	i := rand.IntN(eventNames)
	name := fmt.Sprintf("e%d", i)
	ran := r.execute(ctx, p, pool.Claim{ID: claimant, Event: name}, func() (end func()) {
		if !e.running[i].CompareAndSwap(false, true) {
			r.double("event %s runs twice at once", name)
		}
		return func() { e.running[i].Store(false) }
	})
	if !ran {
		return
	}
	e.claims.Add(1)
	if rand.IntN(4) == 0 {
		if err := p.Finish(ctx, name, []byte("answer")); err != nil {
			r.failed("finish: %v", err)
		}
		return
	}
	err := r.Preheat.SandboxV1alpha1().SandboxClaims(r.Namespace).Delete(ctx, "event-"+name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.failed("forget: %v", err)
	}
}
