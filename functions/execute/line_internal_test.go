package execute

import (
	"testing"
	"time"
)

func TestRetryAfterSeconds(t *testing.T) {
	for _, test := range []struct {
		waiting, claimed int
		mean             time.Duration
		want             int
	}{
		{0, 0, 0, 1}, {0, 4, 10 * time.Millisecond, 1}, {0, 1, 2500 * time.Millisecond, 3}, {7, 2, 2 * time.Second, 8}, {100, 1, time.Minute, maxRetryAfter},
		{1 << 40, 1, time.Hour, maxRetryAfter},
	} {
		if got := retryAfterSeconds(test.waiting, test.claimed, test.mean); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

func TestPaceFollowsExecutions(t *testing.T) {
	var p pace
	if p.of("a") != 0 {
		t.Error("a mean of nothing")
	}
	p.note("a", 8*time.Second)
	if got := p.of("a"); got != 8*time.Second {
		t.Error(got)
	}
	p.note("a", 0)
	if got := p.of("a"); got != 7*time.Second {
		t.Error(got)
	}
	if p.of("b") != 0 {
		t.Error("pools share a mean")
	}
}
