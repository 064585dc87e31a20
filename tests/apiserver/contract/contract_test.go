// Package contract_test holds the pool of a cluster to the contract of all
// pools: on a real API server, with the controller as a program of its own,
// and with real runners in runc containers. Only the node is played.
package contract_test

import (
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/functions/execute/pool/pooltest"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/sandboxes"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *stage.Stage

func TestMain(m *testing.M) { stage.Main(m, func(s *stage.Stage) { shared = s }) }

func TestContract(t *testing.T) { pooltest.Run(t, start) }

func start(t *testing.T, s pooltest.Sizes) pooltest.Subject {
	real, err := sandboxes.New(filepath.Join(product.Root(t), "build"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sp := shared.Space(t)
	t.Cleanup(func() {
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	})
	node := sp.Node(fakenode.Options{Start: real.Start, Ended: real.Ended, Deleted: func(pod *corev1.Pod) {
		if err := real.End(pod); err != nil {
			t.Error(err)
		}
	}})
	code := sp.Pool("code", "python", int32(s.Warm))
	code.Spec.MaxSandboxes = ptr.To(int32(s.Max))
	sp.Create(sp.Template("python", node), code)
	sp.Controller()
	p := sp.ClaimantOf(kube.Config{MaxSessions: s.Sessions, MaxPoolSessions: s.Sessions})
	sp.Eventually("the pool is known", func() bool { return len(p.Status()) == 1 })
	t.Cleanup(func() {
		for _, fault := range node.Faults() {
			t.Error(fault)
		}
	})
	return pooltest.Subject{
		Pool: p, Close: sync.OnceValue(p.Close),
		Kill: func(tb testing.TB, name string) {
			tb.Helper()
			if err := real.Kill(tb.Context(), name); err != nil {
				tb.Fatal(err)
			}
		},
		Exists: func(_ testing.TB, name string) bool { return real.Exists(name) },
	}
}
