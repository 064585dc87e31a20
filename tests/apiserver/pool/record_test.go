package pool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// TestI10RecordsAreBounded fills a namespace with the records of events: the
// oldest answers go first, which a later delivery learns, and then the oldest
// records. What is within the limits stays.
func TestI10RecordsAreBounded(t *testing.T) {
	t.Setenv("PREHEAT_MAX_EVENT_RECORDS", "6")
	t.Setenv("PREHEAT_MAX_EVENT_ANSWERS", "40Ki")
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("the sandboxes are warm", func() bool { return len(p.Status()) == 1 && p.Status()[0].Warm == 2 })
	random := rand.NewChaCha8([32]byte{})
	// Each takes a little more than 9 KiB when it is compressed: four fit.
	answers := map[string][]byte{}
	answer := func(event string) {
		t.Helper()
		w := want()
		w.Event = event
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sandbox, err := p.Claim(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		use(t, sandbox)
		sandbox.Release()
		data := make([]byte, 9<<10)
		_, _ = random.Read(data) // never fails
		answers[event] = data
		if err := p.Finish(t.Context(), event, data); err != nil {
			t.Fatal(err)
		}
	}
	// state says what becomes of a later delivery of each event.
	state := func() string {
		t.Helper()
		var all []string
		for i := range len(answers) {
			event := fmt.Sprintf("e%d", i)
			got, err := p.Await(t.Context(), event)
			switch {
			case errors.Is(err, pool.ErrAnswerDropped):
				all = append(all, "dropped")
			case err != nil:
				t.Fatal(err)
			case got == nil:
				all = append(all, "gone")
			case bytes.Equal(got, answers[event]):
				all = append(all, "kept")
			default:
				t.Fatalf("event %s has an answer that is not its own", event)
			}
		}
		return strings.Join(all, " ")
	}
	for i, want := range []string{
		3: "kept kept kept kept",
		4: "dropped kept kept kept kept",
		5: "dropped dropped kept kept kept kept",
		6: "gone dropped dropped kept kept kept kept",
		7: "gone gone dropped dropped kept kept kept kept",
	} {
		answer(fmt.Sprintf("e%d", i))
		if want != "" {
			sp.Eventually(want, func() bool { return state() == want })
		}
	}
	c := sp.Claim("event-e3").Status.GetCondition(v1alpha1.ConditionReady)
	if !c.IsFalse() || c.Reason != v1alpha1.ReasonAnswerDropped || c.Message == "" {
		t.Errorf("the claim of a dropped answer says %v", c)
	}
	if n := len(sp.Claims()); n != 6 {
		t.Errorf("there are %d claims, want 6", n)
	}
}
