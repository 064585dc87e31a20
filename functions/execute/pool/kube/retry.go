package kube

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// backoff is between the tries of a write that ends a claim.
var backoff = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 4, Jitter: 0.5, Steps: endTries}

// retry calls do until it succeeds, endTries times at most and until ctx ends or
// lasting, if not nil, reports that trying again is useless. It returns do's last
// error.
func retry(ctx context.Context, lasting func(error) bool, do func(context.Context) error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (done bool, err error) {
		last = do(ctx)
		return last == nil || lasting != nil && lasting(last), nil
	})
	if last != nil {
		return last
	}
	return err
}
