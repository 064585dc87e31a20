package pool_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// TestMetrics reads the controller's and the claimant's numbers as Prometheus
// would, and checks them against what was done.
func TestMetrics(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sp.Settings("config-observability", map[string]string{"metrics-protocol": "prometheus", "metrics-endpoint": address})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	registry := prometheus.NewRegistry()
	p := sp.ClaimantWith(registry)
	sp.Eventually("two sandboxes are warm", func() bool { return sp.Warm() == 2 && p.Status()[0].Warm == 2 })
	s := mustClaim(t, p)

	has := func(name, value string) func() bool {
		return func() bool {
			for line := range strings.Lines(scrape(address)) {
				if strings.HasPrefix(line, name+"{") && strings.Contains(line, `pool="code"`) && strings.HasSuffix(strings.TrimSpace(line), " "+value) {
					return true
				}
			}
			return false
		}
	}
	for name, value := range map[string]string{
		"preheat_pool_warm": "2", "preheat_pool_warming": "0", "preheat_pool_claimed": "1", "preheat_pool_desired": "2",
		"preheat_refill_seconds_count": "3",
	} {
		sp.Eventually(name+" is "+value, has(name, value))
	}
	s.Release()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "preheat_claim_seconds" {
			continue
		}
		m := f.GetMetric()
		if len(m) != 1 || m[0].GetLabel()[0].GetValue() != "fast" || m[0].GetHistogram().GetSampleCount() != 1 {
			t.Errorf("preheat_claim_seconds: %v", m)
		}
		return
	}
	t.Error("there is no preheat_claim_seconds")
}

func scrape(address string) string {
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(data)
}
