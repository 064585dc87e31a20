package walkthrough

import (
	"strings"
	"testing"
	"time"
)

// TestEvents sends programs to a Broker: each of them ends where it should.
func TestEvents(t *testing.T) {
	s := newShell(t)
	b := s.events()
	for _, test := range []struct {
		name string
		run  func(*shell, *broker)
	}{
		{"a result comes from an execute that was at zero", eventFromZero},
		{"a program that fails is a result", eventFails},
		{"what cannot be executed is a dead letter that says why", eventIsRefused},
		{"an event that comes again runs once", eventComesAgain},
		{"a schedule sends events, too", eventOnSchedule},
		{"a bound sink gets what the page runs", sinkIsBound},
		{"without a sandbox it is sent again, and runs", eventIsSentAgain},
		{"an execute that dies runs nothing twice", executeDies},
		{"a burst is executed whole, each event once", burst},
	} {
		t.Run(test.name, func(t *testing.T) {
			sub := *s
			sub.t = t
			test.run(&sub, &broker{&sub, b.url, b.source})
		})
	}
}

func eventFromZero(s *shell, b *broker) {
	s.zero()
	began := time.Now()
	b.mustSend("hello", request(s.t, "python", "print('Hello from an event!')"))
	got := s.of("results", "hello", 1)[0]
	s.t.Logf("from zero to the result in %s", time.Since(began).Round(time.Millisecond))
	if !strings.Contains(got.text, `"Hello from an event!\n"`) || !strings.HasPrefix(got.subject, poolName) {
		s.t.Errorf("the result is\n%s", got.text)
	}
}

func eventFails(s *shell, b *broker) {
	b.mustSend("fails", request(s.t, "python", "raise SystemExit(3)"))
	if got := s.of("results", "fails", 1)[0]; !strings.Contains(got.text, `"exit_code": 3`) {
		s.t.Errorf("the result is\n%s", got.text)
	}
}

func eventIsRefused(s *shell, b *broker) {
	b.mustSend("broken", `{"language": "python"}`)
	b.mustSend("unknown", request(s.t, "cobol", "x"))
	for id, code := range map[string]string{"broken": "422", "unknown": "400"} {
		s.deadLetter(id, code)
	}
}

// deadLetter waits for an event that was given up, and checks the reason.
func (s *shell) deadLetter(id, code string) {
	s.t.Helper()
	if got := s.of("dead-letters", id, 1)[0]; !strings.Contains(got.text, "knativeerrorcode: "+code) {
		s.t.Errorf("the dead letter is\n%s", got.text)
	}
}

func eventComesAgain(s *shell, b *broker) {
	const times = 5
	before := s.eventClaims()
	data := request(s.t, "python", "import uuid; print(uuid.uuid4())")
	for range times {
		b.mustSend("again", data)
	}
	all := s.of("results", "again", times)
	for _, d := range all {
		if d.subject != all[0].subject {
			s.t.Errorf("sandboxes %s and %s have both run it", d.subject, all[0].subject)
		}
	}
	if n := s.newEventClaims(before); n != 1 {
		s.t.Errorf("%d claims for one event", n)
	}
}

// eventOnSchedule has the example's program run every few seconds.
func eventOnSchedule(s *shell, _ *broker) {
	s.t.Cleanup(func() { _, _ = s.tryCleanup("kubectl delete -f config/examples/schedule.yaml") })
	s.run(`sed 's|"0 [*] [*] [*] [*]"|"*/5 * * * * *"|' config/examples/schedule.yaml | kubectl apply -f -`)
	s.eventually("its result", func() bool {
		for _, d := range s.shown("results") {
			if strings.Contains(d.text, `"It is time.\n"`) {
				return true
			}
		}
		return false
	})
}

// sinkIsBound binds execute to the consumer of results.
func sinkIsBound(s *shell, _ *broker) {
	env := "kubectl get ksvc execute -n " + functions + " -o jsonpath='{.spec.template.spec.containers[0].env[*].name}'"
	s.t.Cleanup(func() {
		_, _ = s.tryCleanup("kubectl delete -f config/examples/audit.yaml")
		_, _ = s.tryCleanup("for try in $(seq 200); do " + env + " | grep -q K_SINK || break; sleep 0.3; done; " + executeIsReady)
	})
	s.run("kubectl apply -f config/examples/audit.yaml")
	s.eventually("execute is bound", func() bool { return strings.Contains(s.quiet(env), "K_SINK") })
	s.quiet(executeIsReady)
	r := parse(s.t, s.run(executeCommand("print('who has run this?')")))
	s.eventually("the event of its execution", func() bool {
		for _, d := range s.shown("results") {
			if d.subject == r.SandboxName {
				return true
			}
		}
		return false
	})
}

// eventIsSentAgain drains the pool while nothing refills it.
func eventIsSentAgain(s *shell, b *broker) {
	const scale = "kubectl scale deployment preheat-controller -n " + system + " --replicas="
	s.setEnv("PREHEAT_EVENT_QUEUE_TIMEOUT", "2s")
	s.full(2)
	s.t.Cleanup(func() {
		_, _ = s.tryCleanup(scale + "2 && kubectl rollout status deployment/preheat-controller -n " + system)
	})
	s.run(scale + "0")
	s.quiet("kubectl wait --for=delete pod -l app.kubernetes.io/name=preheat-controller -n " + system + " --timeout=60s")
	for range 2 {
		if r := parse(s.t, s.run(executeCommand("print('warm')"))); r.Stdout != "warm\n" {
			s.t.Errorf("with a warm sandbox left: %+v", r)
		}
	}
	answers := s.tally()
	b.post("drained", request(s.t, "python", "print('at last')"))
	s.eventually("the event is refused twice", func() bool { answers.update(); return answers.count(429) >= 2 })
	s.run(scale + "2")
	if got := s.of("results", "drained", 1)[0]; !strings.Contains(got.text, `"at last\n"`) {
		s.t.Errorf("the result is\n%s", got.text)
	}
	answers.update()
	s.t.Logf("refused %d times on the way", answers.count(429))
}

// executeDies kills execute while it runs an event's program, which is not run
// again: it was cancelled if execute could still say so, else it is a dead
// letter. What comes meanwhile is run.
func executeDies(s *shell, b *broker) {
	s.full(2)
	before := s.eventClaims()
	b.post("dies", request(s.t, "python", "import time; time.sleep(60)"))
	s.eventually("the program runs", func() bool {
		return s.quiet("kubectl get pods -n "+sandboxes+" -l sandbox.preheat.dev/state=claimed -o name") != ""
	})
	s.run("kubectl delete pods -n " + functions + " -l serving.knative.dev/service=execute --grace-period=0 --force")
	b.mustSend("survives", request(s.t, "python", "print('after all')"))
	if got := s.of("results", "survives", 1)[0]; !strings.Contains(got.text, `"after all\n"`) {
		s.t.Errorf("the result is\n%s", got.text)
	}
	s.eventually("the other event has its end", func() bool {
		for consumer, end := range map[string]string{"results": `"status": "cancelled"`, "dead-letters": "knativeerrorcode: 410"} {
			for _, d := range s.shown(consumer) {
				if d.cause == "dies" {
					if !strings.Contains(d.text, end) {
						s.t.Errorf("it ends as\n%s", d.text)
					}
					s.t.Logf("it ends with %s", end)
					return true
				}
			}
		}
		return false
	})
	if n := s.newEventClaims(before); n != 2 {
		s.t.Errorf("%d claims for two events", n)
	}
	s.full(2)
}
