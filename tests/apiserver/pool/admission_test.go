package pool_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/preheat-dev/preheat/api/client/clientset/versioned"
	"github.com/preheat-dev/preheat/api/sandbox/lock"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// op is an operation of a JSON Patch.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func patchOf(t *testing.T, ops ...op) []byte {
	t.Helper()
	data, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// byLock returns a patch as package lock makes it.
func byLock(t *testing.T, patch []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// label is the path of a label of ours.
func label(name string) string {
	return "/metadata/labels/" + strings.ReplaceAll(name, "/", "~1")
}

// sandboxPod is a Pod like those that the controller makes.
func sandboxPod(state string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "code-",
			Labels:       map[string]string{v1alpha1.LabelState: state, v1alpha1.LabelPool: "code", v1alpha1.LabelTemplate: "python", "app.kubernetes.io/name": "x"},
			Annotations:  map[string]string{v1alpha1.AnnotationTokenKey: "k"},
			Finalizers:   []string{"preheat.test/kept"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxWarmPool", Name: "code", UID: "u",
			}},
		},
		Spec: corev1.PodSpec{
			Containers:     []corev1.Container{{Name: "sandbox", Image: "preheat.test/sandbox:1"}},
			InitContainers: []corev1.Container{{Name: "first", Image: "preheat.test/sandbox:1"}},
		},
	}
	if state != v1alpha1.StateWarm {
		pod.OwnerReferences, pod.Labels[v1alpha1.LabelClaim] = nil, "c"
	}
	return pod
}

// TestExecuteChangesPodsOnlyToClaimThem tries what the right to patch Pods
// would allow beyond the patches of package lock.
func TestExecuteChangesPodsOnlyToClaimThem(t *testing.T) {
	sp := shared.Space(t)
	config := sp.Config()
	stage.AsExecute(config)
	execute, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// patch has execute patch a new Pod with a state.
	patch := func(state string, data []byte) error {
		t.Helper()
		pod := sandboxPod(state)
		if state == "" { // not of ours
			pod.Labels = map[string]string{"app": "x"}
		}
		pod, err := sp.Kube.CoreV1().Pods(sp.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = execute.CoreV1().Pods(sp.Namespace).Patch(t.Context(), pod.Name, lock.PatchType, data, metav1.PatchOptions{})
		return err
	}
	image := op{"replace", "/spec/containers/0/image", "preheat.test/evil:1"}
	sp.Eventually("the policy is in force", func() bool { return denied(patch(v1alpha1.StateWarm, patchOf(t, image))) })

	const warm, claimed = v1alpha1.StateWarm, v1alpha1.StateClaimed
	claim := []op{{"replace", label(v1alpha1.LabelState), claimed}, {"add", label(v1alpha1.LabelClaim), "c"}, {"add", "/metadata/ownerReferences", []any{}}}
	with := func(more ...op) []byte { return patchOf(t, append(claim[:3:3], more...)...) }
	plain, err := lock.Claim(lock.Holder{Claim: "c"})
	full, err2 := lock.Claim(lock.Holder{Claim: "c", UID: "u1", Trace: "t", Deadline: time.Minute})
	limit, err3 := lock.Limit("c", time.Minute)
	surrender, err4 := lock.Discard(lock.Holder{Claim: "c"})
	for what, c := range map[string]struct {
		state string
		patch []byte
	}{
		"claim": {warm, byLock(t, plain, err)}, "surrender": {claimed, byLock(t, surrender, err4)}, "bound the life": {claimed, byLock(t, limit, err3)},
		"claim with a trace": {warm, with(op{"add", label(v1alpha1.LabelClaimUID), "u1"}, op{"add", label(v1alpha1.LabelTrace), "t"})},
		"nothing":            {warm, patchOf(t, op{"test", label(v1alpha1.LabelState), warm})},
	} {
		if err := patch(c.state, c.patch); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, c := range map[string]struct {
		state string
		patch []byte
	}{
		"an image":                       {warm, patchOf(t, image)},
		"an image with a claim":          {warm, with(image)},
		"an image with a deadline":       {claimed, patchOf(t, image, op{"add", "/spec/activeDeadlineSeconds", 60})},
		"an init container's image":      {warm, with(op{"replace", "/spec/initContainers/0/image", "preheat.test/evil:1"})},
		"a toleration":                   {warm, with(op{"add", "/spec/tolerations/-", map[string]string{"operator": "Exists"}})},
		"another pool":                   {warm, with(op{"replace", label(v1alpha1.LabelPool), "other"})},
		"no pool":                        {warm, with(op{"remove", label(v1alpha1.LabelPool), nil})},
		"another template's policy":      {claimed, patchOf(t, op{"replace", label(v1alpha1.LabelTemplate), "open"})},
		"no template":                    {claimed, patchOf(t, op{"remove", label(v1alpha1.LabelTemplate), nil})},
		"a label of others":              {warm, with(op{"add", "/metadata/labels/app.kubernetes.io~1name", "y"})},
		"the label of claimants":         {claimed, patchOf(t, op{"add", label(v1alpha1.LabelClaimant), ""})},
		"an annotation":                  {warm, with(op{"add", "/metadata/annotations/x", "y"})},
		"the key":                        {warm, patchOf(t, op{"replace", "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.AnnotationTokenKey, "/", "~1"), "x"})},
		"an owner":                       {claimed, patchOf(t, op{"add", "/metadata/ownerReferences", []any{map[string]string{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}}})},
		"no owner without a claim":       {warm, patchOf(t, op{"add", "/metadata/ownerReferences", []any{}})},
		"no finalizer":                   {claimed, patchOf(t, op{"remove", "/metadata/finalizers", nil})},
		"warm again":                     {claimed, patchOf(t, op{"replace", label(v1alpha1.LabelState), warm})},
		"retired without a claim":        {warm, patchOf(t, op{"replace", label(v1alpha1.LabelState), v1alpha1.StateRetired})},
		"no state":                       {warm, patchOf(t, op{"remove", label(v1alpha1.LabelState), nil})},
		"claimed by nobody":              {warm, patchOf(t, op{"replace", label(v1alpha1.LabelState), claimed})},
		"somebody else's sandbox":        {claimed, patchOf(t, op{"replace", label(v1alpha1.LabelClaim), "mine"})},
		"somebody else's, by the UID":    {claimed, patchOf(t, op{"add", label(v1alpha1.LabelClaimUID), "mine"})},
		"the life of what is nobody's":   {warm, patchOf(t, op{"add", "/spec/activeDeadlineSeconds", 60})},
		"a claim together with its life": {warm, byLock(t, full, err2)},
		"what is no sandbox":             {"", patchOf(t, op{"add", label(v1alpha1.LabelState), claimed}, op{"add", label(v1alpha1.LabelClaim), "c"})},
	} {
		if err := patch(c.state, c.patch); !denied(err) {
			t.Errorf("%s: %v, want a refusal by the policy", what, err)
		}
	}
}

// denied reports whether an admission policy of ours refused a call.
func denied(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'preheat-")
}

// TestRecordsOfEventsAreExecutes: whoever may edit claims can neither make nor
// mark that of an event, which would deny the event.
func TestRecordsOfEventsAreExecutes(t *testing.T) {
	sp := shared.Space(t)
	editor := clientOf(t, sp, editorOf(t, sp))
	execute := clientOf(t, sp, stage.AsExecute)
	create := func(by versioned.Interface, c *v1alpha1.SandboxClaim) error {
		c.Spec.WarmPoolRef.Name = "code"
		_, err := by.SandboxV1alpha1().SandboxClaims(sp.Namespace).Create(t.Context(), c, metav1.CreateOptions{})
		return err
	}
	named := func(name string) *v1alpha1.SandboxClaim {
		return &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationBegun: "false"}}}
	}
	sp.Eventually("the policy is in force", func() bool { return denied(create(editor, named("event-probe"))) })
	if err := create(editor, &v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{GenerateName: "event-"}}); !denied(err) {
		t.Errorf("a generated name: %v", err)
	}
	for what, call := range map[string]error{
		"an editor makes a claim": create(editor, named("mine")), "execute makes that of an event": create(execute, named("event-a")),
		"execute makes another": create(execute, named("claim-a")),
	} {
		if call != nil {
			t.Errorf("%s: %v", what, call)
		}
	}
	change := func(by versioned.Interface, name, patch string, sub ...string) error {
		_, err := by.SandboxV1alpha1().SandboxClaims(sp.Namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
		return err
	}
	const begun = `{"metadata":{"annotations":{"sandbox.preheat.dev/begun":"true"}}}`
	const ended = `{"status":{"finishedAt":"2026-01-01T00:00:00Z","answer":"aGVsbG8="}}`
	// In order: what has begun stays so, what has ended as well.
	for _, c := range []struct {
		what    string
		err     func() error
		refused bool
	}{
		{"an editor marks", func() error { return change(editor, "event-a", begun) }, true},
		{"an editor labels", func() error { return change(editor, "event-a", `{"metadata":{"labels":{"x":"y"}}}`) }, false},
		{"execute labels", func() error { return change(execute, "event-a", `{"metadata":{"labels":{"x":"z"}}}`) }, true},
		{"execute changes who delivered", func() error {
			return change(execute, "event-a", `{"metadata":{"annotations":{"sandbox.preheat.dev/delivery":"x"}}}`)
		}, true},
		{"execute finalizes", func() error { return change(execute, "event-a", `{"metadata":{"finalizers":["preheat.test/kept"]}}`) }, true},
		{"execute marks another claim", func() error { return change(execute, "claim-a", begun) }, true},
		{"execute marks", func() error { return change(execute, "event-a", begun) }, false},
		{"execute takes the mark away", func() error { return change(execute, "event-a", strings.Replace(begun, "true", "false", 1)) }, true},
		{"execute says which sandbox", func() error { return change(execute, "event-a", `{"status":{"sandbox":{"name":"x"}}}`, "status") }, true},
		{"execute ends another claim", func() error { return change(execute, "claim-a", ended, "status") }, true},
		{"execute answers", func() error { return change(execute, "event-a", ended, "status") }, false},
		{"execute opens it again", func() error { return change(execute, "event-a", `{"status":{"finishedAt":null}}`, "status") }, true},
	} {
		if err := c.err(); denied(err) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v, want a refusal: %v", c.what, err, c.refused)
		}
	}
	if err := change(editor, "event-a", ended, "status"); !apierrors.IsForbidden(err) {
		t.Errorf("an editor answers: %v", err)
	}
}

func clientOf(t *testing.T, sp *stage.Space, as func(*rest.Config)) versioned.Interface {
	t.Helper()
	config := sp.Config()
	as(config)
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// editorOf makes a user with what config/rbac/user.yaml gives to who may edit.
func editorOf(t *testing.T, sp *stage.Space) func(*rest.Config) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"sandbox.preheat.dev"}, Resources: []string{"sandboxclaims"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editor"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "editor"},
		Subjects: []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "editor"}},
	}
	if _, err := sp.Kube.RbacV1().Roles(sp.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Kube.RbacV1().RoleBindings(sp.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func(c *rest.Config) { c.Impersonate = rest.ImpersonationConfig{UserName: "editor"} }
}
