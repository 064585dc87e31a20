// Package manifests_test has a real API server check every manifest of config/
// against the resource definitions that Kubernetes, Preheat, Knative and
// OpenShift publish: what it would refuse, and each field that it would drop
// without a word.
package manifests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/controlplane"
)

// openshift are the definitions of what config/openshift uses, in the module
// that OpenShift publishes them in.
var openshift = []string{
	"route/v1/zz_generated.crd-manifests/routes.crd.yaml",
	"console/v1/zz_generated.crd-manifests/00_consolelinks.crd.yaml",
	"console/v1/zz_generated.crd-manifests/00_consolequickstarts.crd.yaml",
	"console/v1/zz_generated.crd-manifests/00_consoleyamlsamples.crd.yaml",
}

// cluster is an API server that knows every kind that a manifest may be of.
type cluster struct {
	t                         *testing.T
	root, kubectl, kubeconfig string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	root, err := binaries.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := binaries.Kube.Dir()
	if err != nil {
		t.Fatal(err)
	}
	knative, err := binaries.Knative.ModuleDir(t.Context(), "knative.dev/serving")
	if err != nil {
		t.Fatal(err)
	}
	eventing, err := binaries.Eventing.ModuleDir(t.Context(), "knative.dev/eventing")
	if err != nil {
		t.Fatal(err)
	}
	published, err := openshiftModule(t.Context(), root)
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
	c := &cluster{t, root, filepath.Join(kube, "kubectl"), server.Kubeconfig()}
	c.must("apply", "--server-side", "-k", "config/crds")
	c.must("apply", "--server-side", "-f", filepath.Join(knative, "config/core/300-resources"))
	c.must("apply", "--server-side", "-f", filepath.Join(eventing, "config/core/resources"))
	for _, file := range openshift {
		c.must("apply", "--server-side", "-f", filepath.Join(published, file))
	}
	c.must("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	c.must("apply", "--server-side", "-f", "config/base/namespaces.yaml")
	c.must("create", "namespace", "traefik") // the local cluster's gateway
	return c
}

// openshiftModule is the folder of the module github.com/openshift/api.
func openshiftModule(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/openshift/api")
	cmd.Dir = filepath.Join(root, "tests/apiserver/manifests/openshift")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("fetch OpenShift's resource definitions: %w: %s", err, out)
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", err
	}
	return m.Dir, nil
}

func (c *cluster) run(args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), c.kubectl, args...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cluster) must(args ...string) {
	c.t.Helper()
	if out, err := c.run(args...); err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// check has the API server do all but keep what args name.
func (c *cluster) check(args ...string) (string, error) {
	return c.run(append([]string{"apply", "--server-side", "--dry-run=server", "--validate=strict"}, args...)...)
}

func TestManifests(t *testing.T) {
	c := newCluster(t)
	for _, what := range [][]string{
		{"-k", "config/base"}, {"-k", "config/overlays/local"}, {"-k", "config/openshift"}, {"-f", "config/examples"},
		{"-k", "config/eventing"}, {"-k", "config/overlays/local-eventing"}, {"-k", "config/overlays/kafka-eventing"},
	} {
		out, err := c.check(what...)
		if err != nil {
			t.Errorf("%s: %v\n%s", what[1], err, out)
			continue
		}
		t.Logf("%s: %d objects", what[1], strings.Count(out, "serverside-applied"))
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "Warning:") {
				t.Errorf("%s: %s", what[1], line)
			}
		}
	}
	t.Run("mistakes are found", func(t *testing.T) { c.findsMistakes(t) })
}

// A check that lets everything through would look just as well.
func (c *cluster) findsMistakes(t *testing.T) {
	for file, mistake := range map[string][2]string{
		"config/openshift/route.yaml":   {"termination: edge", "termination: none"},
		"config/openshift/console.yaml": {"location: ApplicationMenu", "place: ApplicationMenu"},
		"config/base/pool.yaml":         {"replicas: 2", "size: 2"},
		"config/base/execute.yaml":      {"timeoutSeconds: 480", "timeout: 420"},
	} {
		data, err := os.ReadFile(filepath.Join(c.root, file))
		if err != nil {
			t.Fatal(err)
		}
		wrong := strings.Replace(string(data), mistake[0], mistake[1], 1)
		if wrong == string(data) {
			t.Fatalf("%s has no %q", file, mistake[0])
		}
		path := filepath.Join(t.TempDir(), "wrong.yaml")
		if err := os.WriteFile(path, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := c.check("-f", path); err == nil {
			t.Errorf("%s with %q was accepted:\n%s", file, mistake[1], out)
		}
	}
}
