package pool_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// twoReplicas are two of execute that know a pool of so many warm sandboxes.
func twoReplicas(t *testing.T, size int) (*stage.Space, *fakenode.Node, []*kube.Pool) {
	t.Helper()
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", int32(size)))
	sp.Controller()
	replicas := []*kube.Pool{sp.Claimant(), sp.Claimant()}
	sp.Eventually("the sandboxes are warm", func() bool {
		return sp.Warm() == size && replicas[0].Status()[0].Warm == size && replicas[1].Status()[0].Warm == size
	})
	return sp, node, replicas
}

// deliver runs an event as a replica of execute does, and returns its answer.
func deliver(t *testing.T, p *kube.Pool, event string, runs *atomic.Int64) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	w := want()
	w.Event = event
	for {
		s, err := p.Claim(ctx, w)
		if errors.Is(err, pool.ErrDelivered) {
			answer, err := p.Await(ctx, event)
			if err != nil {
				t.Errorf("await event %s: %v", event, err)
				return ""
			}
			if answer != nil {
				return string(answer)
			}
			continue
		}
		if err != nil {
			t.Errorf("claim for event %s: %v", event, err)
			return ""
		}
		runs.Add(1)
		use(t, s)
		s.Release()
		answer := "answer of " + s.Name()
		if err := p.Finish(ctx, event, []byte(answer)); err != nil {
			t.Error(err)
		}
		return answer
	}
}

// TestI10OneRunPerEventOfAllReplicas delivers events to two replicas at once
// and again after the end, with fewer sandboxes than deliveries.
func TestI10OneRunPerEventOfAllReplicas(t *testing.T) {
	sp, node, replicas := twoReplicas(t, 2)
	for _, event := range []string{"a1", "b2", "c3", "d4"} {
		var runs atomic.Int64
		var mu sync.Mutex
		answers := map[string]int{}
		var wg sync.WaitGroup
		for _, p := range replicas {
			wg.Go(func() {
				answer := deliver(t, p, event, &runs)
				mu.Lock()
				defer mu.Unlock()
				answers[answer]++
			})
		}
		wg.Wait()
		for _, p := range replicas {
			answers[deliver(t, p, event, &runs)]++
		}
		if runs.Load() != 1 || len(answers) != 1 {
			t.Errorf("event %s ran %d times and was answered %v", event, runs.Load(), answers)
		}
	}
	// The sandboxes are gone at once, the claims stay as the record.
	sp.Eventually("the pool is full again", func() bool { return len(sp.Pods("")) == 2 && sp.Warm() == 2 })
	if n := len(sp.Claims()); n != 4 {
		t.Errorf("%d claims are kept, want 4", n)
	}
	noFaults(t, node)
}

// TestI10InterruptedEvent: an event whose program has begun and that nobody
// answers does not run again.
func TestI10InterruptedEvent(t *testing.T) {
	_, node, replicas := twoReplicas(t, 1)
	p, other := replicas[0], replicas[1]
	w := want()
	w.Event = "e5"
	s, err := p.Claim(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	use(t, s)
	s.Release()
	if err := p.Finish(t.Context(), w.Event, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Claim(t.Context(), w); !errors.Is(err, pool.ErrDelivered) {
		t.Fatalf("the second delivery: %v, want %v", err, pool.ErrDelivered)
	}
	if _, err := other.Await(t.Context(), w.Event); !errors.Is(err, pool.ErrInterrupted) {
		t.Errorf("its answer: %v, want %v", err, pool.ErrInterrupted)
	}
	// A random megabyte cannot be recorded, and the caller is told so.
	big := make([]byte, 1<<20)
	for i, x := 0, uint32(1); i < len(big); i++ {
		x = x*1664525 + 1013904223
		big[i] = byte(x >> 24)
	}
	if err := p.Finish(t.Context(), w.Event, big); !errors.Is(err, pool.ErrTooLarge) {
		t.Errorf("a large answer: %v, want %v", err, pool.ErrTooLarge)
	}
	noFaults(t, node)
}

// TestLateAnswerLeavesALaterDeliveryAlone: whose claim is gone cannot record its
// answer in the claim that a later delivery of the event has made.
func TestLateAnswerLeavesALaterDeliveryAlone(t *testing.T) {
	sp, node, replicas := twoReplicas(t, 2)
	w := want()
	w.Event = "k9"
	claimBy := func(p *kube.Pool) pool.Sandbox {
		s, err := p.Claim(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	early := claimBy(replicas[0])
	sp.EndClaim("event-k9")
	later := claimBy(replicas[1])
	early.Release()
	if err := replicas[0].Finish(t.Context(), w.Event, []byte("early")); err == nil {
		t.Error("the answer of a claim that is gone was recorded")
	}
	if c := sp.Claim("event-k9"); c.Status.FinishedAt != nil {
		t.Errorf("the later delivery's claim has ended: %+v", c.Status)
	}
	use(t, later)
	later.Release()
	if err := replicas[1].Finish(t.Context(), w.Event, []byte("later")); err != nil {
		t.Error(err)
	}
	if answer, err := replicas[0].Await(t.Context(), w.Event); string(answer) != "later" || err != nil {
		t.Errorf("the recorded answer is %q, %v", answer, err)
	}
	noFaults(t, node)
}

// TestI10ClaimantDies: what began its program and never answered is not run
// again by another replica, which hears of it in time.
func TestI10ClaimantDies(t *testing.T) {
	sp, node, replicas := twoReplicas(t, 1)
	p, other := replicas[0], replicas[1]
	w := want()
	w.Event, w.Deadline = "f6", time.Now().Add(time.Second)
	s, err := p.Claim(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	use(t, s) // and nothing ever ends it
	if _, err := other.Claim(t.Context(), w); !errors.Is(err, pool.ErrDelivered) {
		t.Fatalf("the second delivery: %v, want %v", err, pool.ErrDelivered)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	if _, err := other.Await(ctx, w.Event); !errors.Is(err, pool.ErrInterrupted) {
		t.Errorf("its answer: %v, want %v", err, pool.ErrInterrupted)
	}
	s.Release()
	sp.Eventually("the pool is full again", func() bool { return len(sp.Pods("")) == 1 && sp.Warm() == 1 })
	noFaults(t, node)
}

// TestI10ClaimantDiesInLine: an event whose claimant died before its program
// began runs when it is delivered again.
func TestI10ClaimantDiesInLine(t *testing.T) {
	sp, node, replicas := twoReplicas(t, 1)
	// What a replica leaves that was killed while it waited for a sandbox.
	sp.Create(&v1alpha1.SandboxClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "event-h8", Annotations: map[string]string{v1alpha1.AnnotationBegun: "false"}},
		Spec: v1alpha1.SandboxClaimSpec{
			WarmPoolRef: v1alpha1.Reference{Name: "code"}, BindTimeoutSeconds: 60,
			Lifecycle: v1alpha1.Lifecycle{ShutdownTime: &metav1.Time{Time: time.Now().Add(2 * time.Second)}, TTLSecondsAfterFinished: ptr.To[int32](600)},
		},
	})
	var runs atomic.Int64
	first := deliver(t, replicas[0], "h8", &runs)
	if again := deliver(t, replicas[1], "h8", &runs); again != first || first == "" || runs.Load() != 1 {
		t.Errorf("answered %q and %q in %d runs", first, again, runs.Load())
	}
	if begun := sp.Claim("event-h8").Annotations[v1alpha1.AnnotationBegun]; begun != "true" {
		t.Errorf("its claim says %q of having begun", begun)
	}
	noFaults(t, node)
}

// TestI10RecordIsForgotten: an answer is kept for its time and then goes.
func TestI10RecordIsForgotten(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 1))
	sp.Controller()
	p := sp.ClaimantThatRemembers(8 * time.Second)
	sp.Eventually("the sandbox is warm", func() bool { return sp.Warm() == 1 && p.Status()[0].Warm == 1 })
	var runs atomic.Int64
	first := deliver(t, p, "g7", &runs)
	if again := deliver(t, p, "g7", &runs); again != first || runs.Load() != 1 {
		t.Errorf("answered %q and %q in %d runs", first, again, runs.Load())
	}
	settled(sp, 1)
	if third := deliver(t, p, "g7", &runs); third == first || runs.Load() != 2 {
		t.Errorf("answered %q after its record was gone, in %d runs", third, runs.Load())
	}
	noFaults(t, node)
}
