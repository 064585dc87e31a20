package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// staleAfter is how long the API server may refuse to say what there is before
// that counts as unknown.
const staleAfter = 30 * time.Second

// follower lists and watches what is of one kind, and notes whether it can.
// Informers try again without end and report that to nobody: their handler of
// watch errors is not called while connections are refused.
type follower struct {
	kind string

	mu sync.Mutex
	// since is when lists or watches began to fail, zero if the last one did not.
	since time.Time
	err   error
}

// resource is a client of one kind of objects.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// follow returns an informer of what a client lists with a label selector.
// clientset is the client's.
func follow[L runtime.Object](f *follower, r resource[L], clientset any, example runtime.Object, selector string) toolscache.SharedIndexInformer {
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := r.List(ctx, o)
			f.note(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			w, err := r.Watch(ctx, o)
			f.note(ctx, err)
			return w, err
		},
	}
	return toolscache.NewSharedIndexInformerWithOptions(toolscache.ToListWatcherWithWatchListSemantics(lw, clientset), example,
		toolscache.SharedIndexInformerOptions{Indexers: toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}})
}

func (f *follower) note(ctx context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.since, f.err = time.Time{}, nil
	case ctx.Err() != nil: // it was stopped
	default:
		if f.since.IsZero() {
			f.since = time.Now()
		}
		f.err = err
	}
}

// stale is why what is known may be out of date, if it may.
func (f *follower) stale() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.since.IsZero() || time.Since(f.since) < staleAfter {
		return nil
	}
	return fmt.Errorf("%s have not been known since %s: %w", f.kind, f.since.UTC().Format(time.RFC3339), f.err)
}
