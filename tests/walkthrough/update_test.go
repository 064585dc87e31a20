package walkthrough

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// load runs clients until ctx ends, and returns how many executions each ended.
// Any answer but a result, or a refusal for want of a sandbox, is an error.
func (s *shell) load(ctx context.Context, clients int) (ended int, errs []error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range clients {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _, err := s.client(i)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else {
					ended++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return ended, errs
}

func TestUpdatesUnderLoadLoseNothing(t *testing.T) {
	s := newShell(t)
	s.full(2)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	type outcome struct {
		ended int
		errs  []error
	}
	done := make(chan outcome, 1)
	go func() {
		ended, errs := s.load(ctx, 3)
		done <- outcome{ended, errs}
	}()
	for _, name := range []string{"execute", "chat"} {
		before := s.quiet("kubectl get ksvc " + name + " -n " + functions + " -o jsonpath={.status.latestReadyRevisionName}")
		// A new annotation is a new revision.
		s.run(fmt.Sprintf(`kubectl patch ksvc %s -n %s --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"preheat.test/update":"%d"}}}}}'`,
			name, functions, time.Now().UnixNano()))
		s.eventually("the new revision of "+name+" serves", func() bool {
			now := s.quiet("kubectl get ksvc " + name + " -n " + functions + ` -o jsonpath='{.status.latestReadyRevisionName} {.status.traffic[0].revisionName} {.status.conditions[?(@.type=="Ready")].status}'`)
			var ready, serving, status string
			_, err := fmt.Sscan(now, &ready, &serving, &status)
			return err == nil && ready != before && serving == ready && status == "True"
		})
		// The old one still has its last requests.
		time.Sleep(3 * time.Second)
	}
	s.run("kubectl rollout restart deployment/preheat-controller -n " + system)
	s.run("kubectl rollout status deployment/preheat-controller -n " + system + " --timeout=80s")
	s.run("kubectl rollout restart deployment/chat-ui -n web-ui")
	time.Sleep(3 * time.Second)
	stop()
	o := <-done
	t.Logf("%d executions ended meanwhile", o.ended)
	if o.ended < 3 {
		t.Errorf("only %d executions ended", o.ended)
	}
	for _, err := range o.errs {
		t.Error(err)
	}
	s.full(2)
}
