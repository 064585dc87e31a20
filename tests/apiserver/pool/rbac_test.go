package pool_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// may is what each account may do in the namespace of its pools: all of it.
var may = map[string]map[string]string{
	"execute": {
		"pods": "get list watch patch", "sandbox.preheat.dev/sandboxclaims": "get create patch delete",
		"sandbox.preheat.dev/sandboxclaims/status": "patch",
		"sandbox.preheat.dev/sandboxtemplates":     "list watch", "sandbox.preheat.dev/sandboxwarmpools": "list watch",
	},
	"controller": {
		"pods": "list watch create patch delete", "events": "create patch", "configmaps": "", "secrets": "create",
		"networking.k8s.io/networkpolicies":    "get list watch create update delete",
		"sandbox.preheat.dev/sandboxtemplates": "get list watch", "sandbox.preheat.dev/sandboxwarmpools": "get list watch",
		"sandbox.preheat.dev/sandboxclaims":           "get list watch delete",
		"sandbox.preheat.dev/sandboxtemplates/status": "update", "sandbox.preheat.dev/sandboxwarmpools/status": "update",
		"sandbox.preheat.dev/sandboxclaims/status": "update", "coordination.k8s.io/leases": "get create update",
	},
}

var accounts = map[string]func(*rest.Config){"execute": stage.AsExecute, "controller": stage.AsController}

var (
	verbs     = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "escalate", "bind"}
	resources = []string{
		"pods", "pods/exec", "pods/attach", "pods/log", "pods/portforward", "pods/ephemeralcontainers", "pods/eviction", "pods/binding", "pods/status",
		"secrets", "configmaps", "events", "services", "nodes", "namespaces", "serviceaccounts", "serviceaccounts/token", "persistentvolumeclaims",
		"apps/deployments", "batch/jobs", "networking.k8s.io/networkpolicies", "coordination.k8s.io/leases",
		"rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterroles",
		"sandbox.preheat.dev/sandboxtemplates", "sandbox.preheat.dev/sandboxtemplates/status",
		"sandbox.preheat.dev/sandboxwarmpools", "sandbox.preheat.dev/sandboxwarmpools/status", "sandbox.preheat.dev/sandboxwarmpools/scale",
		"sandbox.preheat.dev/sandboxclaims", "sandbox.preheat.dev/sandboxclaims/status",
	}
)

// TestRights asks the API server's authorizer for every verb on every resource.
func TestRights(t *testing.T) {
	sp := shared.Space(t)
	for account, as := range accounts {
		config := sp.Config()
		as(config)
		kube, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range resources {
			allowed := strings.Fields(may[account][resource])
			for _, verb := range verbs {
				want := slices.Contains(allowed, verb)
				if got := mayDo(t, kube, sp.Namespace, verb, resource); got != want {
					t.Errorf("%s may %s %s: %v, want %v", account, verb, resource, got, want)
				}
				if mayDo(t, kube, "default", verb, resource) {
					t.Errorf("%s may %s %s elsewhere", account, verb, resource)
				}
			}
		}
		for _, r := range slices.Sorted(maps.Keys(may[account])) {
			if !slices.Contains(resources, r) {
				t.Errorf("%s is not among the resources asked for", r)
			}
		}
	}
}

// mayDo asks for a right. A verb on a resource is one on all its objects.
func mayDo(t *testing.T, kube kubernetes.Interface, namespace, verb, resource string) bool {
	t.Helper()
	a := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: resource}
	parts := strings.Split(resource, "/")
	if strings.Contains(parts[0], ".") || parts[0] == "apps" || parts[0] == "batch" {
		a.Group, parts = parts[0], parts[1:]
	}
	a.Resource = parts[0]
	if len(parts) > 1 {
		a.Subresource = parts[1]
	}
	review, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// TestRefusedCalls makes the calls that would hurt most.
func TestRefusedCalls(t *testing.T) {
	sp := shared.Space(t)
	config := sp.Config()
	stage.AsExecute(config)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, pods := t.Context(), kube.CoreV1().Pods(sp.Namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := sp.Kube.CoreV1().Pods(sp.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"create a Pod": func() error { _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); return err },
		"delete a Pod": func() error { return pods.Delete(ctx, "p", metav1.DeleteOptions{}) },
		"update a Pod": func() error { _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); return err },
		"read secrets": func() error {
			_, err := kube.CoreV1().Secrets(sp.Namespace).List(ctx, metav1.ListOptions{})
			return err
		},
		"read Pods elsewhere": func() error { _, err := kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); return err },
		"run a command inside": func() error {
			return kube.CoreV1().RESTClient().Post().Namespace(sp.Namespace).Resource("pods").Name("p").SubResource("exec").Do(ctx).Error()
		},
	}
	for what, call := range calls {
		if err := call(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: err = %v, want forbidden", what, err)
		}
	}
}
