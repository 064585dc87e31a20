package health

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// refusing is an API server that cannot be reached.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }

func TestLoops(t *testing.T) {
	t.Parallel()
	const (
		lease = "PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/warmpool.00-of-01"
		watch = "GET /api/v1/pods?watch=true&labelSelector=a%3Db&resourceVersion=7"
	)
	for name, test := range map[string]struct {
		// before are requests at the start, later those before the check.
		before, later string
		after         time.Duration
		stopped       string // "" if all loops turn
	}{
		"nothing yet":                 {"", "", time.Hour, ""},
		"a lease":                     {lease, "", time.Minute, ""},
		"a lease that nobody renews":  {lease, "", time.Minute + time.Second, "lease warmpool.00-of-01 for 1m1s"},
		"a lease that is renewed":     {lease, lease, time.Hour, ""},
		"another lease is renewed":    {lease, lease + "-other", time.Hour, "lease warmpool.00-of-01 for 1h0m0s"},
		"a watch":                     {watch, "", 15 * time.Minute, ""},
		"a watch that has stopped":    {watch, "", 16 * time.Minute, "watch /api/v1/pods a=b for 16m0s"},
		"a watch that goes on":        {watch, strings.Replace(watch, "7", "8", 1), time.Hour, ""},
		"a watch of other objects":    {watch, strings.Replace(watch, "a%3Db", "c", 1), time.Hour, "watch /api/v1/pods a=b for 1h0m0s"},
		"requests that are no loops":  {"GET /api/v1/pods?limit=1 POST /apis/coordination.k8s.io/v1/namespaces/n/leases", "", time.Hour, ""},
		"what is only called a lease": {"GET /apis/example.com/v1/leases/a", "", time.Hour, ""},
		"two that have stopped":       {lease + " " + watch, "", time.Hour, "both"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			l := New(time.Minute)
			l.now = func() time.Time { return now }
			rt := l.Wrap(refusing{})
			send := func(requests string) {
				fields := strings.Fields(requests)
				for i := 0; i+1 < len(fields); i += 2 {
					r, err := http.NewRequestWithContext(t.Context(), fields[i], "https://api"+fields[i+1], nil)
					if err != nil {
						t.Fatal(err)
					}
					if res, err := rt.RoundTrip(r); err == nil {
						_ = res.Body.Close()
						t.Error("the request was answered")
					}
				}
			}
			send(test.before)
			now = now.Add(test.after)
			send(test.later)
			err := l.Check()
			switch {
			case test.stopped == "" && err != nil:
				t.Error(err)
			case name == "two that have stopped":
				if err == nil || !strings.Contains(err.Error(), "lease ") || !strings.Contains(err.Error(), "watch ") {
					t.Error(err)
				}
			case test.stopped != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+test.stopped)):
				t.Errorf("%v does not end in %q", err, test.stopped)
			}
		})
	}
}
