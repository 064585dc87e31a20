package addons

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
)

// Modules that hold the manifests of Knative Serving. Its own has links to some
// files of the others, which module archives leave out.
const (
	servingModule    = "knative.dev/serving"
	networkingModule = "knative.dev/networking"
	cachingModule    = "knative.dev/caching"
)

func knativeImage(program string) string { return "dev.local/cluster/knative-" + program + ":1" }

// serving returns the manifests of Knative Serving with the images' names as
// they are here: the resource definitions, and the rest.
func serving(ctx context.Context) (crds, core string, err error) {
	dirs := map[string]string{}
	for _, module := range []string{servingModule, networkingModule, cachingModule} {
		if dirs[module], err = binaries.Knative.ModuleDir(ctx, module); err != nil {
			return "", "", err
		}
	}
	crds, err = manifest(dirs, []string{
		servingModule + ":config/core/300-resources/*.yaml",
		networkingModule + ":config/certificate.yaml", networkingModule + ":config/domain-claim.yaml",
		networkingModule + ":config/ingress.yaml", networkingModule + ":config/serverlessservice.yaml",
		cachingModule + ":config/image.yaml",
	})
	if err != nil {
		return "", "", err
	}
	core, err = manifest(dirs, []string{
		servingModule + ":config/core/100-namespace.yaml", servingModule + ":config/core/200-roles/*.yaml",
		servingModule + ":config/core/200-serviceaccount.yaml", servingModule + ":config/core/configmaps/*.yaml",
		networkingModule + ":config/config-network.yaml", servingModule + ":config/core/webhooks/*.yaml",
		servingModule + ":config/core/999-cache.yaml",
		servingModule + ":config/core/deployments/activator.yaml", servingModule + ":config/core/deployments/autoscaler.yaml",
		servingModule + ":config/core/deployments/controller.yaml", servingModule + ":config/core/deployments/webhook.yaml",
	})
	return crds, core, err
}

var koImage = regexp.MustCompile(`ko://knative\.dev/(serving|eventing)/cmd/([a-z_/-]+)`)

// cpuRequest is what a program of Knative's asks for, sized for a cluster of many
// users: together most of a small machine, which would be left for no sandbox.
var cpuRequest = regexp.MustCompile(`(requests:\n +cpu: )\d+m\b`)

// manifest joins the files that match patterns of the form MODULE:GLOB.
func manifest(dirs map[string]string, patterns []string) (string, error) {
	var out strings.Builder
	for _, pattern := range patterns {
		module, glob, _ := strings.Cut(pattern, ":")
		files, err := filepath.Glob(filepath.Join(dirs[module], glob))
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "", fmt.Errorf("the module %s has no file %s", module, glob)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			out.WriteString("---\n")
			out.Write(data)
		}
	}
	text := cpuRequest.ReplaceAllString(out.String(), "${1}10m")
	return koImage.ReplaceAllStringFunc(text, func(s string) string {
		m := koImage.FindStringSubmatch(s)
		if m[1] == "eventing" {
			return eventingImage(m[2])
		}
		return knativeImage(m[2])
	}), nil
}
