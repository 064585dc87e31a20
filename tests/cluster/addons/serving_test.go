package addons

import (
	"os"
	"path/filepath"
	"testing"
)

func TestManifest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "image: ko://knative.dev/serving/cmd/queue\n", "b.yaml": "value: \"ko://knative.dev/serving/cmd/activator\"\n", "c.txt": "no\n",
		"e.yaml": "requests:\n  cpu: 300m\n  memory: 60Mi\nlimits:\n  cpu: 1000m\n",
		"d.yaml": "image: ko://knative.dev/eventing/cmd/in_memory/channel_controller\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dirs := map[string]string{servingModule: dir}
	got, err := manifest(dirs, []string{servingModule + ":*.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	want := "---\nimage: dev.local/cluster/knative-queue:1\n---\nvalue: \"dev.local/cluster/knative-activator:1\"\n" +
		"---\nimage: dev.local/cluster/knative-eventing-in-memory-channel-controller:1\n" +
		"---\nrequests:\n  cpu: 10m\n  memory: 60Mi\nlimits:\n  cpu: 1000m\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// A module that has changed its files must not go unnoticed.
	if _, err := manifest(dirs, []string{servingModule + ":gone/*.yaml"}); err == nil {
		t.Error("a missing file is no error")
	}
}
