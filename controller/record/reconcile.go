package record

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	typed "github.com/preheat-dev/preheat/api/client/clientset/versioned/typed/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/controller/index"
)

const (
	// maxWrites bounds a namespace's API writes in flight.
	maxWrites = 8
	// writeTimeout bounds one of them.
	writeTimeout = 10 * time.Second
	// retryAfter is the pause after a refused write.
	retryAfter = time.Second
	// logEvery is how often the log says that a namespace is at its limits.
	logEvery = time.Minute
)

// recordReconciler keeps each namespace within the limits.
type recordReconciler struct {
	reconciler.LeaderAwareFuncs
	client  typed.SandboxV1alpha1Interface
	index   *index.Index
	limits  Limits
	metrics *metrics
	// namespaces holds what is known of each beyond the cache. There is one
	// worker, which alone uses it.
	namespaces map[string]*namespace
}

// namespace is what the controller knows of a namespace beyond the cache.
type namespace struct {
	// dropped and removed hold the claims whose answers and which themselves
	// went by its own writes, until the cache shows it.
	dropped, removed map[types.UID]bool
	// logged is when the log last said that the limits are reached,
	// droppedSince and removedSince count what went since then.
	logged                     time.Time
	droppedSince, removedSince int
}

var (
	_ controller.Reconciler  = (*recordReconciler)(nil)
	_ reconciler.LeaderAware = (*recordReconciler)(nil)
)

// Reconcile implements controller.Reconciler.
func (r *recordReconciler) Reconcile(ctx context.Context, key string) error {
	name, _, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.NewPermanentError(fmt.Errorf("split the key %q: %w", key, err))
	}
	if !r.IsLeaderFor(keyOf(name)) {
		return controller.NewSkipKey(key)
	}
	claims, err := r.index.Records(name)
	if err != nil {
		return err
	}
	n := r.namespaces[name]
	if n == nil {
		n = &namespace{dropped: map[types.UID]bool{}, removed: map[types.UID]bool{}}
		r.namespaces[name] = n
	}
	records := n.records(claims)
	a := plan(records, r.limits)
	dropped, removed, err := r.carryOut(ctx, name, claims, a)
	n.note(dropped, removed)
	r.metrics.record(ctx, name, n.records(claims), len(dropped), len(removed))
	n.log(ctx, name, r.limits, time.Now())
	if len(claims) == 0 {
		delete(r.namespaces, name)
	}
	if err != nil {
		logging.FromContext(ctx).Warnw("Some records of events could not be dropped", "namespace", name, "error", err)
		return controller.NewRequeueAfter(retryAfter)
	}
	return nil
}

// records turns claims into what the plan decides on, without what went already.
func (n *namespace) records(claims []*v1alpha1.SandboxClaim) []record {
	cached := make(map[types.UID]bool, len(claims))
	records := make([]record, 0, len(claims))
	for _, c := range claims {
		cached[c.UID] = true
		if n.removed[c.UID] {
			continue
		}
		x := record{
			name: c.Name, uid: c.UID, finished: c.Status.FinishedAt.Time,
			begun: c.Annotations[v1alpha1.AnnotationBegun] != "false", bytes: int64(len(c.Status.Answer)),
		}
		if n.dropped[c.UID] {
			if x.bytes == 0 {
				delete(n.dropped, c.UID)
			}
			x.bytes = 0
		}
		records = append(records, x)
	}
	for _, known := range []map[types.UID]bool{n.dropped, n.removed} {
		for uid := range known {
			if !cached[uid] {
				delete(known, uid)
			}
		}
	}
	return records
}

func (n *namespace) note(dropped, removed []types.UID) {
	for _, uid := range dropped {
		n.dropped[uid] = true
	}
	for _, uid := range removed {
		n.removed[uid] = true
	}
	n.droppedSince += len(dropped)
	n.removedSince += len(removed)
}

// log says that the limits are reached, once in a while.
func (n *namespace) log(ctx context.Context, name string, l Limits, now time.Time) {
	if n.droppedSince+n.removedSince == 0 || now.Sub(n.logged) < logEvery {
		return
	}
	logging.FromContext(ctx).Warnw("The records of events reach their limits: a later delivery of an old event gets no answer, or runs again",
		"namespace", name, "answers_dropped", n.droppedSince, "records_removed", n.removedSince, "max_records", l.Records, "max_answer_bytes", l.Bytes)
	n.logged, n.droppedSince, n.removedSince = now, 0, 0
}

// carryOut does what was decided, and returns what it has done.
func (r *recordReconciler) carryOut(ctx context.Context, namespace string, claims []*v1alpha1.SandboxClaim, a actions) (dropped, removed []types.UID, err error) {
	byUID := make(map[types.UID]*v1alpha1.SandboxClaim, len(claims))
	for _, c := range claims {
		byUID[c.UID] = c
	}
	var (
		g    errgroup.Group
		mu   sync.Mutex
		errs []error
	)
	g.SetLimit(maxWrites)
	do := func(x record, step func(context.Context, *v1alpha1.SandboxClaim) error, done *[]types.UID) {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			err := step(ctx, byUID[x.uid])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				*done = append(*done, x.uid)
			case apierrors.IsConflict(err), apierrors.IsNotFound(err): // its news are on their way
			default:
				errs = append(errs, fmt.Errorf("claim %s: %w", x.name, err))
			}
			return nil
		})
	}
	api := r.client.SandboxClaims(namespace)
	for _, x := range a.remove {
		do(x, func(ctx context.Context, c *v1alpha1.SandboxClaim) error {
			return api.Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(c.UID))})
		}, &removed)
	}
	for _, x := range a.drop {
		do(x, func(ctx context.Context, c *v1alpha1.SandboxClaim) error {
			_, err := api.UpdateStatus(ctx, withoutAnswer(c), metav1.UpdateOptions{})
			return err
		}, &dropped)
	}
	_ = g.Wait() // the steps report through errs
	return dropped, removed, errors.Join(errs...)
}

// withoutAnswer is c with a mark in place of its answer.
func withoutAnswer(c *v1alpha1.SandboxClaim) *v1alpha1.SandboxClaim {
	c = c.DeepCopy()
	c.Status.Answer = nil
	c.GetConditionSet().Manage(c.GetStatus()).MarkFalse(v1alpha1.ConditionReady, v1alpha1.ReasonAnswerDropped,
		"the event has been answered, and the answer was dropped to make room for later ones")
	return c
}
