package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/preheat-dev/preheat/functions/execute/pool"
)

// An event whose caller's time is over is answered at once, however long the API
// server takes to delete its claim.
func TestNoCallerWaitsForTheEndOfAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _, preheat := testPool(t, testCache(t))
		answers := make(chan struct{})
		preheat.PrependReactor("delete", "sandboxclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-answers
			return false, nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		failed := make(chan error, 1)
		go func() { // received below
			_, err := p.Claim(ctx, pool.Claim{Language: "python", Event: "e", Deadline: time.Now().Add(time.Hour)})
			failed <- err
		}()
		<-ctx.Done()
		synctest.Wait()
		select {
		case err := <-failed:
			if !errors.Is(err, pool.ErrNoSandbox) {
				t.Errorf("err = %v, want %v", err, pool.ErrNoSandbox)
			}
		default:
			t.Error("the caller waits")
		}
		close(answers)
		p.work.Wait()
		claims, err := preheat.SandboxV1alpha1().SandboxClaims("n").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(claims.Items) != 0 {
			t.Errorf("%v: claims left %v", err, claims)
		}
	})
}
