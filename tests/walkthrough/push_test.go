package walkthrough

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// What `make push` pushes is what was built, under the names that `make deploy`
// gives to the cluster.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	settings := filepath.Join(t.TempDir(), "registries.conf")
	if err := os.WriteFile(settings, fmt.Appendf(nil, "[[registry]]\nlocation = %q\ninsecure = true\n", host), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	s.env = append(s.env, "CONTAINERS_REGISTRIES_CONF="+settings)
	s.run("config/images/images.sh push " + host + "/preheat")
	built := strings.Split(s.quiet("config/images/images.sh list"), "\n")
	if len(built) != 4 {
		t.Errorf("%d images: %v", len(built), built)
	}
	for _, line := range built {
		image, tag, _ := strings.Cut(line, " ")
		ref, err := name.ParseReference(host + "/preheat/" + image + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		pushed, err := remote.Image(ref)
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		config, err := pushed.ConfigFile()
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		for _, label := range []string{"title", "version", "revision"} {
			if config.Config.Labels["org.opencontainers.image."+label] == "" {
				t.Errorf("%s has no label for its %s", ref, label)
			}
		}
		if user := config.Config.User; user == "" || user == "0" || user == "root" {
			t.Errorf("%s runs as user %q", ref, user)
		}
	}
}
