package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	serving "knative.dev/serving/pkg/client/clientset/versioned"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// The names of the deployment.
const (
	functions = "llm-sandbox-demo"
	sandboxes = "runc-warmpool"
	poolName  = "code-sandbox-pool"

	templateName = "code-sandbox"

	patience = 3 * time.Minute
)

const program = `{"language":"python","code":"print(1)"}`

// endpoint is where programs are run.
type endpoint struct {
	url, host string
	client    *http.Client
}

// cluster is the cluster under measurement.
type cluster struct {
	kube          kubernetes.Interface
	preheat       versioned.Interface
	knative       serving.Interface
	pods          *pods
	size          int32
	idle          idlePods
	image         string
	inside, route endpoint
}

func connect(ctx context.Context) (*cluster, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.QPS = -1
	c := &cluster{}
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.preheat, err = versioned.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.knative, err = serving.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.pods, err = watchPods(ctx, c.kube); err != nil {
		return nil, err
	}
	template, err := c.preheat.SandboxV1alpha1().SandboxTemplates(sandboxes).Get(ctx, templateName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	c.image = template.Spec.PodTemplate.Spec.Containers[0].Image
	return c, c.locate(ctx)
}

// locate finds execute behind its own Service, and chat behind the ingress.
func (c *cluster) locate(ctx context.Context) error {
	execute, err := c.knative.ServingV1().Services(functions).Get(ctx, "execute", metav1.GetOptions{})
	if err != nil {
		return err
	}
	private, err := c.kube.CoreV1().Services(functions).Get(ctx, execute.Status.LatestReadyRevisionName+"-private", metav1.GetOptions{})
	if err != nil {
		return err
	}
	chat, err := c.knative.ServingV1().Services(functions).Get(ctx, "chat", metav1.GetOptions{})
	if err != nil {
		return err
	}
	ingress, err := c.kube.CoreV1().Services("traefik").Get(ctx, "traefik", metav1.GetOptions{})
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	c.inside = endpoint{url: "http://" + private.Spec.ClusterIP, client: client}
	c.route = endpoint{url: "http://" + ingress.Spec.ClusterIP, host: (*url.URL)(chat.Status.URL).Host, client: client}
	return nil
}

var errBusy = errors.New("no sandbox in time")

// run runs print(1) and checks what it printed.
func (e endpoint) run(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v1/sandbox/execute", strings.NewReader(program))
	if err != nil {
		return err
	}
	req.Host = e.host
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		return errBusy
	}
	var result struct{ Stdout string }
	if err := json.Unmarshal(body, &result); err != nil || result.Stdout != "1\n" {
		return fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return nil
}

// resize sets the pool's size and waits until it is warm.
func (c *cluster) resize(ctx context.Context, size int32) (was int32, err error) {
	pools := c.preheat.SandboxV1alpha1().SandboxWarmPools(sandboxes)
	// The controller writes the pool's status meanwhile.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := pools.GetScale(ctx, poolName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		was, scale.Spec.Replicas = scale.Spec.Replicas, size
		_, err = pools.UpdateScale(ctx, poolName, scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return was, err
	}
	return was, c.warm(ctx, size)
}

// warm waits until so many sandboxes can be claimed.
func (c *cluster) warm(ctx context.Context, n int32) error {
	return c.pods.until(ctx, fmt.Sprintf("%d sandboxes are warm", n), func(_, ready int) bool { return ready >= int(n) })
}

func (c *cluster) until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (c *cluster) barePod(label string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: label + "-", Labels: map[string]string{label: ""}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), HostUsers: ptr.To(false),
			// As sandboxes: with 0 it would be gone before it has ended.
			TerminationGracePeriodSeconds: ptr.To[int64](5),
			Containers: []corev1.Container{{
				Name: "sandbox", Image: c.image, ImagePullPolicy: corev1.PullIfNotPresent,
				Env: []corev1.EnvVar{{Name: v1alpha1.EnvListen, Value: ":7070"}, {Name: v1alpha1.EnvToken, Value: "bench"}},
			}},
		},
	}
}

// writeCount is how many writes the API server has taken of what an execution
// changes: the cluster goes on with its own business meanwhile.
func (c *cluster) writeCount(ctx context.Context) (float64, error) {
	text, err := c.kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	family := families["apiserver_request_total"]
	if family == nil {
		return 0, errors.New("the API server does not count its requests")
	}
	sum := 0.0
	for _, m := range family.Metric {
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "DELETE", "APPLY":
			switch labels["resource"] {
			case "pods", "events", "sandboxclaims", "sandboxwarmpools":
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum, nil
}
