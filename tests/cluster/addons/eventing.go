package addons

import (
	"context"
	"strings"

	"github.com/preheat-dev/preheat/tests/cluster/binaries"
)

const eventingModule = "knative.dev/eventing"

// eventingImage is the image of a program, which is named by its package.
func eventingImage(program string) string {
	return "dev.local/cluster/knative-eventing-" + strings.NewReplacer("/", "-", "_", "-").Replace(program) + ":1"
}

// eventing returns the manifests of Knative Eventing with the broker that
// keeps its events in memory: the resource definitions, and the rest.
func eventing(ctx context.Context) (crds, core string, err error) {
	dir, err := binaries.Eventing.ModuleDir(ctx, eventingModule)
	if err != nil {
		return "", "", err
	}
	dirs := map[string]string{eventingModule: dir}
	crds, err = manifest(dirs, []string{
		eventingModule + ":config/core/resources/*.yaml", eventingModule + ":config/channels/in-memory-channel/resources/*.yaml",
	})
	if err != nil {
		return "", "", err
	}
	core, err = manifest(dirs, []string{
		eventingModule + ":config/core/100-namespace.yaml", eventingModule + ":config/core/200-*.yaml",
		eventingModule + ":config/core/roles/*.yaml", eventingModule + ":config/core/configmaps/*.yaml",
		eventingModule + ":config/core/webhooks/*.yaml",
		eventingModule + ":config/core/deployments/controller.yaml", eventingModule + ":config/core/deployments/webhook.yaml",
		eventingModule + ":config/core/deployments/pingsource-mt-adapter.yaml",
		eventingModule + ":config/brokers/mt-channel-broker/roles/*.yaml",
		eventingModule + ":config/brokers/mt-channel-broker/deployments/broker-*.yaml",
		eventingModule + ":config/brokers/mt-channel-broker/deployments/controller.yaml",
		eventingModule + ":config/channels/in-memory-channel/200-*.yaml",
		eventingModule + ":config/channels/in-memory-channel/roles/*.yaml",
		eventingModule + ":config/channels/in-memory-channel/configmaps/*.yaml",
		eventingModule + ":config/channels/in-memory-channel/webhooks/*.yaml",
		eventingModule + ":config/channels/in-memory-channel/deployments/*.yaml",
	})
	return crds, core, err
}
