package walkthrough

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// broker is where a producer sends events to.
type broker struct {
	s   *shell
	url string
}

// events installs the Broker, its Triggers and the consumers.
func (s *shell) events() *broker {
	s.t.Helper()
	overlay := "config/eventing"
	if strings.HasPrefix(s.quiet("kubectl config current-context"), "preheat-") {
		overlay = "config/overlays/local-eventing"
	}
	s.run("kubectl apply -k " + overlay)
	s.t.Cleanup(func() {
		if out, err := s.tryCleanup("kubectl delete -k " + overlay + " --ignore-not-found"); err != nil {
			s.t.Errorf("removing the events' objects: %v: %s", err, out)
		}
	})
	s.run("kubectl wait -n " + functions + " --timeout=80s --for=condition=Ready broker/default trigger/execute trigger/results")
	s.run("kubectl rollout status -n " + functions + " --timeout=80s deployment/results")
	s.run("kubectl rollout status -n " + functions + " --timeout=80s deployment/dead-letters")
	return &broker{s, s.forward("knative-eventing", "broker-ingress") + "/" + functions + "/default"}
}

// send sends a requested event whose data is as it stands.
func (b *broker) send(ctx context.Context, id, data string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewBufferString(data))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Source": "/walkthrough", "Ce-Type": execution.TypeRequested, "Content-Type": execution.MediaJSON,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the broker answered %s", res.Status)
	}
	return nil
}

func (b *broker) mustSend(id, data string) {
	b.s.t.Helper()
	b.s.t.Logf("event %s: %s", id, data)
	if err := b.send(b.s.t.Context(), id, data); err != nil {
		b.s.t.Fatalf("event %s: %v", id, err)
	}
}

// displayed is an event in a consumer's log.
type displayed struct{ cause, subject, text string }

var (
	causation = regexp.MustCompile(`(?m)^  causationid: (\S+)$`)
	subject   = regexp.MustCompile(`(?m)^  subject: (\S+)$`)
	eventID   = regexp.MustCompile(`(?m)^  id: (\S+)$`)
)

// shown are the events that a consumer has got.
func (s *shell) shown(consumer string) []displayed {
	s.t.Helper()
	first := func(re *regexp.Regexp, text string) string {
		if m := re.FindStringSubmatch(text); m != nil {
			return m[1]
		}
		return ""
	}
	var all []displayed
	for _, text := range strings.Split(s.quiet("kubectl logs --tail=-1 -n "+functions+" deployment/"+consumer), "cloudevents.Event\n")[1:] {
		d := displayed{first(causation, text), first(subject, text), text}
		if d.cause == "" {
			d.cause = first(eventID, text) // a dead letter is the event itself
		}
		all = append(all, d)
	}
	return all
}

// of waits until a consumer has got n events of a cause, and returns them.
func (s *shell) of(consumer, cause string, n int) []displayed {
	s.t.Helper()
	var found []displayed
	s.eventually(fmt.Sprintf("%s gets %d of event %s", consumer, n, cause), func() bool {
		found = nil
		for _, d := range s.shown(consumer) {
			if d.cause == cause {
				found = append(found, d)
			}
		}
		return len(found) >= n
	})
	return found
}

// request is a program as the data of an event.
func request(t *testing.T, language, code string) string {
	t.Helper()
	text, err := json.Marshal(execution.Request{Language: language, Code: code})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEvents sends programs to a Broker: each of them ends where it should.
func TestEvents(t *testing.T) {
	s := newShell(t)
	b := s.events()
	t.Run("a program's result comes to whoever waits for results", func(t *testing.T) {
		b.mustSend("hello", request(t, "python", "print('Hello from an event!')"))
		got := s.of("results", "hello", 1)[0]
		if !strings.Contains(got.text, `"Hello from an event!\n"`) || !strings.HasPrefix(got.subject, poolName) {
			t.Errorf("the result is\n%s", got.text)
		}
	})
	t.Run("a program that fails is a result", func(t *testing.T) {
		b.mustSend("fails", request(t, "python", "raise SystemExit(3)"))
		if got := s.of("results", "fails", 1)[0]; !strings.Contains(got.text, `"exit_code": 3`) {
			t.Errorf("the result is\n%s", got.text)
		}
	})
	t.Run("what cannot be executed is a dead letter that says why", func(t *testing.T) {
		b.mustSend("broken", `{"language": "python"}`)
		b.mustSend("unknown", request(t, "cobol", "x"))
		for id, code := range map[string]string{"broken": "422", "unknown": "400"} {
			if got := s.of("dead-letters", id, 1)[0]; !strings.Contains(got.text, "knativeerrorcode: "+code) {
				t.Errorf("the dead letter is\n%s", got.text)
			}
		}
	})
	t.Run("an event that comes again runs once", func(t *testing.T) {
		const times = 5
		data := request(t, "python", "import uuid; print(uuid.uuid4())")
		for range times {
			b.mustSend("again", data)
		}
		all := s.of("results", "again", times)
		for _, d := range all {
			if d.subject != all[0].subject {
				t.Errorf("sandboxes %s and %s have both run it", d.subject, all[0].subject)
			}
		}
	})
	t.Run("a burst is executed whole, each event once", func(t *testing.T) { s.burst(b, burstSize(t)) })
}

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

func (s *shell) burst(b *broker, n int) {
	t := s.t
	began := time.Now()
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
	accepted := time.Since(began)
	ran := map[string]map[string]bool{} // the sandboxes of each event
	answers := 0
	for deadline := began.Add(time.Duration(n)*time.Second + patience); len(ran) < n; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events have a result", len(ran), n)
		}
		ran, answers = map[string]map[string]bool{}, 0
		for _, d := range s.shown("results") {
			if strings.HasPrefix(d.cause, "burst-") {
				if ran[d.cause] == nil {
					ran[d.cause] = map[string]bool{}
				}
				ran[d.cause][d.subject] = true
				answers++
			}
		}
	}
	for cause, sandboxes := range ran {
		if len(sandboxes) != 1 {
			t.Errorf("event %s has run in %d sandboxes", cause, len(sandboxes))
		}
	}
	t.Logf("events=%d accepted_seconds=%.1f seconds=%.1f answers=%d", n, accepted.Seconds(), time.Since(began).Seconds(), answers)
}
