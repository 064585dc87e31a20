// Package services reads how the platform's own Knative Services stand: those
// of one namespace that are labelled as part of Preheat. What the API server
// said is given again for two seconds, so that any number of readers cost it a
// few small requests in that time, and one after the other.
package services

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"
	v1 "knative.dev/serving/pkg/apis/serving/v1"
	serving "knative.dev/serving/pkg/client/clientset/versioned/typed/serving/v1"

	"github.com/preheat-dev/preheat/functions/chat"
)

const (
	// selector tells the platform's Services from others in its namespace.
	selector = "app.kubernetes.io/part-of=preheat"
	// most bounds how many are read.
	most = 20
	// fresh is how long what was read is given again.
	fresh = 2 * time.Second
	// patience bounds one reading.
	patience = 5 * time.Second
	// longest bounds a message of the cluster, in bytes.
	longest = 500
)

// Reader is a chat.ServiceLister.
type Reader struct {
	client    serving.ServingV1Interface
	namespace string
	now       func() time.Time
	// last holds what was read last. Whoever has taken it out reads.
	last chan reading
}

type reading struct {
	at   time.Time
	list []chat.Service
	err  error
}

// New returns a reader of namespace.
func New(client serving.ServingV1Interface, namespace string) *Reader {
	r := &Reader{client: client, namespace: namespace, now: time.Now, last: make(chan reading, 1)}
	r.last <- reading{}
	return r
}

// Services implements chat.ServiceLister. Its list is shared: it must not be
// changed.
func (r *Reader) Services(ctx context.Context) ([]chat.Service, error) {
	var last reading
	select {
	case last = <-r.last:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { r.last <- last }()
	if last.at.IsZero() || r.now().Sub(last.at) >= fresh {
		list, err := r.read(ctx)
		if ctx.Err() != nil {
			// One reader's end says nothing to the others.
			return nil, context.Cause(ctx)
		}
		last = reading{at: r.now(), list: list, err: err}
	}
	return last.list, last.err
}

func (r *Reader) read(ctx context.Context) ([]chat.Service, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := r.client.Services(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: most})
	if err != nil {
		return nil, fmt.Errorf("list the Knative Services of %s: %w", r.namespace, err)
	}
	list := make([]chat.Service, 0, len(found.Items))
	for i := range found.Items {
		s := service(&found.Items[i])
		if s.Revision != "" {
			revision, err := r.client.Revisions(r.namespace).Get(ctx, s.Revision, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				return nil, fmt.Errorf("read the revision %s: %w", s.Revision, err)
			default:
				s.Replicas = int(ptr.Deref(revision.Status.ActualReplicas, 0))
			}
		}
		list = append(list, s)
	}
	return list, nil
}

func service(k *v1.Service) chat.Service {
	s := chat.Service{Name: k.Name, Ready: k.IsReady(), Revision: k.Status.LatestReadyRevisionName}
	if k.Status.URL != nil {
		s.URL = k.Status.URL.String()
	}
	if s.Ready {
		return s
	}
	s.Problem = "It has not been reconciled yet."
	if c := k.Status.GetCondition(apis.ConditionReady); c != nil {
		s.Problem = c.Message
		if s.Problem == "" {
			s.Problem = c.Reason
		}
	}
	if len(s.Problem) > longest {
		s.Problem = strings.ToValidUTF8(s.Problem[:longest], "") + "…"
	}
	return s
}
