package walkthrough

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/controlplane"
)

// refused runs `make deploy`'s script with a kubeconfig and returns what it says
// as it refuses.
func (s *shell) refused(kubeconfig string) string {
	s.t.Helper()
	return s.refusedWith("KUBECONFIG=" + kubeconfig + " REGISTRY=")
}

// refusedWith does so with variables.
func (s *shell) refusedWith(variables string) string {
	s.t.Helper()
	command := variables + " config/deploy.sh 2>&1"
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
		{"no namespace", withoutNamespaces(t), []string{"the namespace llm-sandbox-demo is missing, and you may not create it", "kubectl create namespace llm-sandbox-demo"}},
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

// withoutNamespaces is the kubeconfig of someone who may create everything but
// namespaces, on an API server that knows Knative and has none of ours.
func withoutNamespaces(t *testing.T) string {
	t.Helper()
	knative, err := binaries.Knative.ModuleDir(t.Context(), "knative.dev/serving")
	if err != nil {
		t.Fatal(err)
	}
	server, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := newShell(t)
	s.env = append(s.env, "KUBECONFIG="+server.Kubeconfig())
	s.run("kubectl apply --server-side -f " + filepath.Join(knative, "config/core/300-resources"))
	s.run("kubectl wait --for=condition=Established --timeout=60s crd/services.serving.knative.dev")
	s.run("kubectl create clusterrole deployer --verb=create --resource=customresourcedefinitions,clusterroles,roles,rolebindings,serviceaccounts,networkpolicies,services.serving.knative.dev,validatingadmissionpolicies,validatingadmissionpolicybindings")
	s.run("kubectl create clusterrolebinding deployer --clusterrole=deployer --user=deployer")
	c, err := clientcmd.LoadFromFile(server.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c.AuthInfos[c.Contexts[c.CurrentContext].AuthInfo].Impersonate = "deployer"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// An image that the cluster cannot get is said to be missing, and what was there
// before goes on.
func TestDeploySaysThatAnImageIsMissing(t *testing.T) {
	s := newShell(t)
	s.full(2)
	t.Cleanup(func() {
		if out, err := s.tryCleanup("config/deploy.sh"); err != nil {
			t.Errorf("deploying again: %v: %s", err, out)
		}
	})
	out := s.refusedWith("REGISTRY=127.0.0.1:1/nowhere")
	for _, want := range []string{"did not become ready", "the cluster cannot get an image", "make push REGISTRY="} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if r := parse(t, s.run(executeCommand("print('still here')"))); r.Stdout != "still here\n" {
		t.Errorf("%+v", r)
	}
}
