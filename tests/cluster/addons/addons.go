// Package addons installs what a cluster for Preheat has beside Kubernetes:
// DNS, Knative Serving with Traefik as its ingress, and Knative Eventing.
package addons

import (
	"context"
	"embed"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/preheat-dev/preheat/tests/cluster/archive"
	"github.com/preheat-dev/preheat/tests/cluster/binaries"
	"github.com/preheat-dev/preheat/tests/cluster/node"
)

// Ingress is the address of the ingress' Service.
const Ingress = "10.96.0.80:80"

//go:embed manifests
var manifests embed.FS

// Load imports the images that the node does not have yet.
func Load(ctx context.Context, n *node.Node, knative bool) error {
	images, err := images(knative)
	if err != nil {
		return err
	}
	have, err := n.Images(ctx)
	if err != nil {
		return err
	}
	var missing []archive.Image
	for _, image := range images {
		if !have[image.Name] {
			missing = append(missing, image)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	r, w := io.Pipe()
	defer r.Close()
	written := make(chan error, 1)
	go func() {
		err := archive.Write(w, missing...)
		w.CloseWithError(err)
		written <- err
	}()
	err = n.Import(ctx, r)
	r.Close()
	if writeErr := <-written; writeErr != nil {
		return writeErr
	}
	return err
}

// source is where an image's program comes from.
type source struct {
	name, program string
	tool          binaries.Tool
}

var (
	basics = []source{
		{node.Pause, "pause", binaries.Pause},
		{"dev.local/cluster/coredns:1", "coredns", binaries.CoreDNS},
	}
	knatives = []source{
		{"dev.local/cluster/traefik:1", "traefik", binaries.Traefik},
		{knativeImage("activator"), "activator", binaries.Knative},
		{knativeImage("autoscaler"), "autoscaler", binaries.Knative},
		{knativeImage("controller"), "controller", binaries.Knative},
		{knativeImage("webhook"), "webhook", binaries.Knative},
		{knativeImage("queue"), "queue", binaries.Knative},
		{eventingImage("controller"), "controller", binaries.Eventing},
		{eventingImage("webhook"), "webhook", binaries.Eventing},
		{eventingImage("broker/ingress"), "broker-ingress", binaries.Eventing},
		{eventingImage("broker/filter"), "broker-filter", binaries.Eventing},
		{eventingImage("mtchannel_broker"), "mtchannel-broker", binaries.Eventing},
		{eventingImage("in_memory/channel_controller"), "in-memory-channel-controller", binaries.Eventing},
		{eventingImage("in_memory/channel_dispatcher"), "in-memory-channel-dispatcher", binaries.Eventing},
		{eventingImage("mtping"), "mtping", binaries.Eventing},
		{eventingImage("event_display"), "event-display", binaries.Eventing},
	}
)

func images(knative bool) ([]archive.Image, error) {
	sources := basics
	if knative {
		sources = slices.Concat(basics, knatives)
	}
	var out []archive.Image
	for _, image := range sources {
		dir, err := image.tool.Dir()
		if err != nil {
			return nil, err
		}
		out = append(out, archive.Image{Name: image.name, Program: filepath.Join(dir, image.program)})
	}
	return out, nil
}

// InstallDNS applies what Pods need to find Services, and the rights of the
// NetworkPolicy agent.
func InstallDNS(ctx context.Context, n *node.Node, progress func(string)) error {
	k := &kubectl{node: n}
	base, err := manifests.ReadFile("manifests/base.yaml")
	if err != nil {
		return err
	}
	if err := k.apply(ctx, string(base)); err != nil {
		return fmt.Errorf("install DNS: %w", err)
	}
	if err := k.available(ctx, "kube-system"); err != nil {
		return err
	}
	progress("DNS")
	return nil
}

// InstallGVisor applies the runtime class of Pods that run in gVisor.
func InstallGVisor(ctx context.Context, n *node.Node, progress func(string)) error {
	class, err := manifests.ReadFile("manifests/gvisor.yaml")
	if err != nil {
		return err
	}
	if err := (&kubectl{node: n}).apply(ctx, string(class)); err != nil {
		return fmt.Errorf("install the runtime class gvisor: %w", err)
	}
	progress("gVisor")
	return nil
}

// InstallKnative applies Knative Serving, Traefik and Knative Eventing, and
// waits until they are available.
func InstallKnative(ctx context.Context, n *node.Node, progress func(string)) error {
	k := &kubectl{node: n}
	crds, core, err := serving(ctx)
	if err != nil {
		return fmt.Errorf("find Knative's manifests: %w", err)
	}
	eventCRDs, eventCore, err := eventing(ctx)
	if err != nil {
		return fmt.Errorf("find the manifests of Knative Eventing: %w", err)
	}
	if err := k.apply(ctx, crds+eventCRDs); err != nil {
		return fmt.Errorf("install Knative's resources: %w", err)
	}
	if err := k.established(ctx); err != nil {
		return err
	}
	settings, err := manifests.ReadFile("manifests/knative.yaml")
	if err != nil {
		return err
	}
	ingress, err := manifests.ReadFile("manifests/traefik.yaml")
	if err != nil {
		return err
	}
	for _, text := range []string{core, string(settings), string(ingress)} {
		if err := k.apply(ctx, text); err != nil {
			return fmt.Errorf("install Knative Serving: %w", err)
		}
	}
	// Its webhooks change what is applied, its own namespace included, as soon
	// as they are there: all of it goes in one go.
	if err := k.apply(ctx, eventCore); err != nil {
		return fmt.Errorf("install Knative Eventing: %w", err)
	}
	progress("manifests")
	for _, namespace := range []string{"traefik", "knative-serving", "knative-eventing"} {
		if err := k.available(ctx, namespace); err != nil {
			return err
		}
	}
	progress("Knative Serving, its ingress, and Knative Eventing")
	return nil
}

// kubectl applies manifests.
type kubectl struct{ node *node.Node }

// apply applies manifests. Where Knative is there already, its webhooks may not
// be, for a while: then it tries again.
func (k *kubectl) apply(ctx context.Context, manifest string) error {
	return insist(ctx, "failed calling webhook", func(ctx context.Context) error {
		// The settings change what Knative's own manifests set.
		return k.run(ctx, manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
	})
}

// established waits until all resource definitions are served. kubectl itself
// gives up on one that has no conditions at all yet.
func (k *kubectl) established(ctx context.Context) error {
	return insist(ctx, "accessor error", func(ctx context.Context) error {
		return k.run(ctx, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	})
}

// insist calls f until it fails with anything but a passing error, for a while.
func insist(ctx context.Context, passing string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil || !strings.Contains(err.Error(), passing) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// available waits for the deployments of a namespace.
func (k *kubectl) available(ctx context.Context, namespace string) error {
	err := k.run(ctx, "", "wait", "--for=condition=Available", "deployment", "--all", "-n", namespace, "--timeout=180s")
	if err != nil {
		return fmt.Errorf("wait for the deployments of %s: %w", namespace, err)
	}
	return nil
}

func (k *kubectl) run(ctx context.Context, input string, args ...string) error {
	cmd, err := k.node.Kubectl(ctx, args...)
	if err != nil {
		return err
	}
	var out strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
	if err := k.node.Run(cmd); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return nil
}
