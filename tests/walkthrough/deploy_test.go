package walkthrough

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/preheat-dev/preheat/tests/cluster/controlplane"
)

// refused runs `make deploy`'s script with a kubeconfig and returns what it says
// as it refuses.
func (s *shell) refused(kubeconfig string) string {
	s.t.Helper()
	command := "KUBECONFIG=" + kubeconfig + " REGISTRY= config/deploy.sh 2>&1"
	s.t.Logf("$ %s", command)
	out, err := s.try(command)
	if err == nil {
		s.t.Fatalf("it was deployed:\n%s", out)
	}
	s.t.Logf("%s", out)
	return out
}

// changed writes the current kubeconfig with a change to its current context.
func changed(t *testing.T, change func(*clientcmdapi.Config, *clientcmdapi.Context)) string {
	t.Helper()
	c, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		t.Fatal(err)
	}
	change(c, c.Contexts[c.CurrentContext])
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDeploySaysWhatIsMissing(t *testing.T) {
	s := newShell(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bare, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bare.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct {
		name, kubeconfig string
		says             []string
	}{
		{"no context", empty, []string{"no current context", "use-context"}},
		{"nobody there", changed(t, func(c *clientcmdapi.Config, context *clientcmdapi.Context) {
			c.Clusters[context.Cluster].Server = "https://127.0.0.1:1"
		}), []string{"does not answer", "https://127.0.0.1:1", "get-contexts"}},
		{"no Knative", bare.Kubeconfig(), []string{"Knative Serving is not installed", "OpenShift Serverless"}},
		{"no rights", changed(t, func(c *clientcmdapi.Config, context *clientcmdapi.Context) {
			c.AuthInfos[context.AuthInfo].Impersonate = "visitor"
		}), []string{"visitor may not create", "customresourcedefinitions", "administrator"}},
		{"no images there", changed(t, func(c *clientcmdapi.Config, context *clientcmdapi.Context) {
			c.Contexts["elsewhere"], c.CurrentContext = context, "elsewhere"
		}), []string{"context elsewhere cannot get images", "make push REGISTRY="}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := *s
			s.t = t
			out := s.refused(tt.kubeconfig)
			for _, want := range tt.says {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q", want)
				}
			}
		})
	}
}
