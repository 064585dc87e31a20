package main

import (
	"context"
	"errors"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/preheat-dev/preheat/tests/bench/table"
)

// hasty are the annotations with which a Knative Service scales down at once.
var hasty = map[string]string{
	"autoscaling.knative.dev/scale-to-zero-pod-retention-period": "0s",
	"autoscaling.knative.dev/window":                             "6s",
}

// fromZero measures from a request to its output when execute has no Pod: the
// way that Knative takes then is included.
func (c *cluster) fromZero(ctx context.Context) (_ []table.Row, err error) {
	was, err := c.annotate(ctx, hasty)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, resetErr := c.annotate(context.WithoutCancel(ctx), was)
		err = errors.Join(err, resetErr)
	}()
	const times = 3
	var took []time.Duration
	for range times {
		err := c.until(ctx, "execute is at zero", func() (bool, error) {
			// A Pod that ends still serves for a while.
			list, err := c.kube.CoreV1().Pods(functions).List(ctx, metav1.ListOptions{LabelSelector: "serving.knative.dev/service=execute"})
			return err == nil && len(list.Items) == 0, err
		})
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := c.route.run(ctx); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return []table.Row{table.Latencies("from no Pod of execute to the output, through the route", took)}, nil
}

// annotate sets annotations of execute's Pods, and returns what they were; an
// empty one is none. It waits until the new revision serves.
func (c *cluster) annotate(ctx context.Context, annotations map[string]string) (was map[string]string, err error) {
	services := c.knative.ServingV1().Services(functions)
	was = map[string]string{}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s, err := services.Get(ctx, "execute", metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := &s.Spec.Template.Annotations
		for name := range annotations {
			was[name] = (*now)[name]
		}
		*now = maps.Clone(*now)
		for name, value := range annotations {
			if (*now)[name] = value; value == "" {
				delete(*now, name)
			}
		}
		_, err = services.Update(ctx, s, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return was, c.until(ctx, "the new revision of execute serves", func() (bool, error) {
		s, err := services.Get(ctx, "execute", metav1.GetOptions{})
		return err == nil && s.IsReady() && s.Generation == s.Status.ObservedGeneration, err
	})
}
