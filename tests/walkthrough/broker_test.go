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

// answered counts execute's answers to events, by status, as its Pods have
// logged them.
func (s *shell) answered() map[int]int {
	s.t.Helper()
	counts := map[int]int{}
	logs := s.quiet("kubectl logs -n " + functions + " -l serving.knative.dev/service=execute -c user-container --tail=-1 --max-log-requests=30")
	for line := range strings.Lines(logs) {
		var entry struct {
			Msg, Path string
			Status    int
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "request" && entry.Path == "/" {
			counts[entry.Status]++
		}
	}
	return counts
}

// eventClaims counts the claims that events have made: one each, however often
// they were delivered.
func (s *shell) eventClaims() int {
	s.t.Helper()
	return strings.Count(s.quiet("kubectl get sandboxclaims -n "+sandboxes+" -o name"), "/event-")
}
