package pool_test

import (
	"bytes"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
)

// writes reads from the API server's metrics how often it was written to: Pods
// and claims, but for the status of Pods, which is the nodes'.
func writes(t *testing.T) map[string]float64 {
	t.Helper()
	data, err := shared.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		resource := label["resource"]
		if label["subresource"] != "" {
			resource += "/" + label["subresource"]
		}
		switch label["verb"] {
		case "POST", "PUT", "PATCH", "DELETE":
			switch resource {
			case "pods", "sandboxclaims", "sandboxclaims/status", "events":
				out[label["verb"]+" "+resource] += m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// TestWritesPerExecution counts what an execution costs the API server.
func TestWritesPerExecution(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 4))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("four sandboxes are warm", func() bool { return sp.Warm() == 4 && p.Status()[0].Warm == 4 })
	before := writes(t)
	const n = 40
	for range n {
		s := mustClaim(t, p)
		use(t, s)
		s.Release()
	}
	settled(sp, 4)
	total := 0.0
	for call, count := range writes(t) {
		if each := (count - before[call]) / n; each > 0 {
			t.Logf("%-28s %.2f per execution", call, each)
			total += each
		}
	}
	t.Logf("%-28s %.2f", "writes per execution", total)
	if total < 5 || total > 6 {
		t.Errorf("%.2f writes per execution, want 5 to 6", total)
	}
	noFaults(t, node)
}
