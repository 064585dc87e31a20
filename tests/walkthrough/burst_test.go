package walkthrough

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// burstPool is how many sandboxes are warm while a burst is executed.
const burstPool = 4

// burstSize is how many events come at once: BURST, or 30.
func burstSize(t *testing.T) int {
	text := os.Getenv("BURST")
	if text == "" {
		return 30
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BURST=%s is no number of events", text)
	}
	return n
}

// burst sends many events at once: each of them is completed, and has run once.
func burst(s *shell, b *broker) {
	t, n := s.t, burstSize(s.t)
	s.scale(burstPool)
	t.Cleanup(func() { _, _ = s.tryCleanup(scalePool(2)) })
	answers, before, began := s.tally(), s.eventClaims(), time.Now()
	b.sendAll(n)
	accepted := time.Since(began)
	ran, results := map[string]map[string]bool{}, 0 // the sandboxes of each event
	for progress, known := time.Now(), 0; len(ran) < n; time.Sleep(time.Second) {
		if time.Since(progress) > patience {
			t.Fatalf("%d of %d events have a result, %d are dead letters", len(ran), n, len(s.burstIn("dead-letters")))
		}
		answers.update()
		ran, results = map[string]map[string]bool{}, 0
		for _, d := range s.burstIn("results") {
			if ran[d.cause] == nil {
				ran[d.cause] = map[string]bool{}
			}
			ran[d.cause][d.subject] = true
			results++
		}
		if results > known {
			progress, known = time.Now(), results
		}
	}
	took := time.Since(began)
	for cause, sandboxes := range ran {
		if len(sandboxes) != 1 {
			t.Errorf("event %s has run in %d sandboxes", cause, len(sandboxes))
		}
	}
	if dead := s.burstIn("dead-letters"); len(dead) > 0 {
		t.Errorf("%d dead letters, the first is\n%s", len(dead), dead[0].text)
	}
	// Claims go ten minutes after their answers.
	made := s.newEventClaims(before)
	if made > n || made < n && took < 10*time.Minute {
		t.Errorf("%d claims for %d events", made, n)
	}
	answers.update()
	t.Logf("events=%d pool=%d accepted_seconds=%.1f seconds=%.1f claims=%d results=%d refused_and_sent_again=%d",
		n, burstPool, accepted.Seconds(), took.Seconds(), made, results, answers.count(429))
}

func scalePool(n int) string {
	return fmt.Sprintf("kubectl scale sandboxwarmpool %s -n %s --replicas=%d", poolName, sandboxes, n)
}

func (s *shell) scale(n int) {
	s.t.Helper()
	s.run(scalePool(n))
	s.full(n)
}

func (b *broker) sendAll(n int) {
	t := b.s.t
	var wg sync.WaitGroup
	for i := range n {
		data := request(t, "python", fmt.Sprintf("print(%d)", i))
		wg.Go(func() {
			if err := b.send(t.Context(), fmt.Sprintf("burst-%d", i), data); err != nil {
				t.Errorf("event %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// burstIn are the events of the burst that a consumer has got.
func (s *shell) burstIn(consumer string) []displayed {
	s.t.Helper()
	var all []displayed
	for _, d := range s.shown(consumer) {
		if strings.HasPrefix(d.cause, "burst-") {
			all = append(all, d)
		}
	}
	return all
}
