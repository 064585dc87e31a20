package walkthrough

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/api/execution"
)

// broker is where a producer sends events to.
type broker struct {
	s   *shell
	url string
	// source is another one in each run, whose events are so no duplicates.
	source string
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
	return &broker{s, s.forward("knative-eventing", "broker-ingress") + "/" + functions + "/default", fmt.Sprintf("/walkthrough/%d", time.Now().UnixNano())}
}

// send sends a requested event whose data is as it stands.
func (b *broker) send(ctx context.Context, id, data string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, bytes.NewBufferString(data))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Ce-Specversion": "1.0", "Ce-Id": id, "Ce-Source": b.source, "Ce-Type": execution.TypeRequested, "Content-Type": execution.MediaJSON,
	} {
		req.Header.Set(name, value)
	}
	// A kept connection through the forwarded port may have ended meanwhile, and
	// nobody sends a POST twice.
	req.Close = true
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

// post sends an event and does not wait: a Broker that keeps its events in
// memory answers when they have been delivered, or given up.
func (b *broker) post(id, data string) {
	t := b.s.t
	t.Helper()
	t.Logf("event %s: %s", id, data)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 4*patience)
	sent := make(chan error, 1)
	go func() { sent <- b.send(ctx, id, data) }()
	t.Cleanup(func() {
		defer cancel()
		if err := <-sent; err != nil {
			t.Errorf("event %s: %v", id, err)
		}
	})
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

// tally counts execute's answers to events from one moment on, by status, as
// its Pods have logged them. What a Pod had logged when it was last seen counts.
type tally struct {
	s            *shell
	before, last map[string]map[int]int // by Pod
}

func (s *shell) tally() *tally {
	s.t.Helper()
	t := &tally{s: s, last: map[string]map[int]int{}}
	t.update()
	t.before, t.last = t.last, map[string]map[int]int{}
	return t
}

func (t *tally) update() {
	t.s.t.Helper()
	const of = " -n " + functions + " "
	for _, pod := range strings.Fields(t.s.quiet("kubectl get pods" + of + "-l serving.knative.dev/service=execute -o name")) {
		logs, err := t.s.try("kubectl logs" + of + pod + " -c user-container --tail=-1")
		if err != nil {
			continue // it starts or has gone
		}
		counts := map[int]int{}
		for line := range strings.Lines(logs) {
			var entry struct {
				Msg, Path string
				Status    int
			}
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "request" && entry.Path == "/" {
				counts[entry.Status]++
			}
		}
		t.last[pod] = counts
	}
}

func (t *tally) count(status int) int {
	n := 0
	for pod, counts := range t.last {
		n += counts[status] - t.before[pod][status]
	}
	return n
}

// eventClaims are the names of the claims that events have made, one each,
// which stay with their answers for a while.
func (s *shell) eventClaims() map[string]bool {
	s.t.Helper()
	names := map[string]bool{}
	for name := range strings.FieldsSeq(s.quiet("kubectl get sandboxclaims -n " + sandboxes + " -o jsonpath='{.items[*].metadata.name}'")) {
		if strings.HasPrefix(name, "event-") {
			names[name] = true
		}
	}
	return names
}

// newEventClaims counts those that have come since.
func (s *shell) newEventClaims(since map[string]bool) (n int) {
	s.t.Helper()
	for name := range s.eventClaims() {
		if !since[name] {
			n++
		}
	}
	return n
}
