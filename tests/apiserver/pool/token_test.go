package pool_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
	"github.com/preheat-dev/preheat/functions/execute/pool/kube"
	"github.com/preheat-dev/preheat/tests/cluster/fakenode"
	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

// keys reads the keys of a space's sandboxes.
func keys(sp *stage.Space) (token.Keys, *corev1.Secret) {
	sp.TB.Helper()
	secret, err := sp.Kube.CoreV1().Secrets(sp.Namespace).Get(sp.TB.Context(), token.SecretName, metav1.GetOptions{})
	if err != nil {
		sp.TB.Fatal(err)
	}
	keys, err := token.FromSecret(secret)
	if err != nil {
		sp.TB.Fatal(err)
	}
	return keys, secret
}

// TestAPodDoesNotShowItsToken: nothing in a sandbox's Pod is its token or a key,
// and a sandbox is used all the same.
func TestAPodDoesNotShowItsToken(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	sp.Eventually("the pool is warm", func() bool { return sp.Warm() == 2 })
	known, _ := keys(sp)
	hashes := map[string]bool{}
	for _, pod := range sp.Pods("") {
		secret, ok := known.Token(pod.Annotations[v1alpha1.AnnotationTokenKey], pod.Namespace, pod.Name)
		if !ok {
			t.Fatalf("sandbox %s has no key: %v", pod.Name, pod.Annotations)
		}
		data, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), secret) || strings.Contains(string(data), v1alpha1.EnvToken+`"`) {
			t.Errorf("sandbox %s shows its token", pod.Name)
		}
		if !strings.Contains(string(data), token.Hash(secret)) {
			t.Errorf("sandbox %s does not have the hash of its token", pod.Name)
		}
		hashes[token.Hash(secret)] = true
	}
	if len(hashes) != 2 {
		t.Errorf("two sandboxes have %d tokens", len(hashes))
	}
	p := sp.Claimant()
	useOne(t, p)
	noFaults(t, node)
}

// useOne claims a sandbox, runs something in it and lets it go.
func useOne(t *testing.T, p *kube.Pool) {
	t.Helper()
	s := mustClaim(t, p)
	use(t, s)
	s.Release()
}

// TestKeysRotate: sandboxes of an older key are replaced, no execution is lost
// meanwhile, and the older key can then be removed.
func TestKeysRotate(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	p := sp.Claimant()
	sp.Eventually("the pool is warm", func() bool { return sp.Warm() == 2 })
	useOne(t, p)
	known, secret := keys(sp)
	old, oldNames := known.Current(), slices.Collect(maps.Keys(secret.Data))
	for id, key := range token.NewSecret(sp.Namespace, time.Now().Add(time.Hour)).Data {
		secret.Data[id] = key
	}
	if _, err := sp.Kube.CoreV1().Secrets(sp.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	rolled := func() bool {
		useOne(t, p)
		for _, pod := range sp.Pods("") {
			if pod.Annotations[v1alpha1.AnnotationTokenKey] == old {
				return false
			}
		}
		return true
	}
	sp.Eventually("no sandbox has the old key", rolled)
	_, secret = keys(sp)
	delete(secret.Data, oldNames[0])
	if _, err := sp.Kube.CoreV1().Secrets(sp.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	useOne(t, p)
	useOne(t, sp.Claimant())
	noFaults(t, node)
}

// TestKeysThatAreLost: when the Secret is gone, a new one is made, and sandboxes
// that nobody can use any more are replaced and never sent a program.
func TestKeysThatAreLost(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node), sp.Pool("code", "python", 2))
	sp.Controller()
	sp.Eventually("the pool is warm", func() bool { return sp.Warm() == 2 })
	before, _ := keys(sp)
	if err := sp.Kube.CoreV1().Secrets(sp.Namespace).Delete(t.Context(), token.SecretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p := sp.Claimant() // it has never seen the lost key
	sp.Scale("code", 3)
	useOne(t, p)
	sp.Eventually("all sandboxes have the new key", func() bool {
		for _, pod := range sp.Pods(v1alpha1.StateWarm) {
			if pod.Annotations[v1alpha1.AnnotationTokenKey] == before.Current() {
				return false
			}
		}
		return sp.Warm() == 3
	})
	noFaults(t, node)
}

// TestSandboxesWithTheirTokenInThePod are used and replaced, as when a
// controller that makes such has just been succeeded.
func TestSandboxesWithTheirTokenInThePod(t *testing.T) {
	sp := shared.Space(t)
	node := sp.Node(fakenode.Options{})
	sp.Create(sp.Template("python", node))
	pool := sp.Pool("code", "python", 1)
	pool.Spec.UpdateStrategy.Type = v1alpha1.UpdateOnReplenish
	sp.Create(pool)
	first := sp.Controller()
	sp.Eventually("the pool is warm", func() bool { return sp.Warm() == 1 })
	first.Stop()
	made := sp.WarmPool("code")
	template, err := sp.Preheat.SandboxV1alpha1().SandboxTemplates(sp.Namespace).Get(t.Context(), "python", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "code-old", Labels: map[string]string{
			v1alpha1.LabelState: v1alpha1.StateWarm, v1alpha1.LabelPool: "code", v1alpha1.LabelTemplate: "python",
			v1alpha1.LabelRevision: template.Status.Revision,
		}, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "SandboxWarmPool", Name: "code", UID: made.UID, Controller: ptr.To(true),
		}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sandbox", Image: "preheat.test/sandbox:1", Env: []corev1.EnvVar{
			{Name: v1alpha1.EnvListen, Value: ":" + strconv.Itoa(int(node.Port()))}, {Name: v1alpha1.EnvToken, Value: "seen-by-all"},
		}}}},
	}
	for _, pod := range sp.Pods("") {
		if err := sp.Kube.CoreV1().Pods(sp.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sp.Kube.CoreV1().Pods(sp.Namespace).Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := sp.Claimant()
	sp.Eventually("it is warm", func() bool { return sp.Warm() == 1 })
	s := mustClaim(t, p)
	if s.Name() != "code-old" {
		t.Errorf("the sandbox is %s", s.Name())
	}
	use(t, s)
	s.Release()
	sp.Controller()
	sp.Eventually("its successor does not show its token", func() bool {
		pods := sp.Pods(v1alpha1.StateWarm)
		return len(pods) == 1 && pods[0].Name != "code-old" && pods[0].Annotations[v1alpha1.AnnotationTokenKey] != ""
	})
	noFaults(t, node)
}

// TestWhoReadsTheKeys: execute and the controller read the one Secret and no
// other.
func TestWhoReadsTheKeys(t *testing.T) {
	sp := shared.Space(t)
	for _, secret := range []*corev1.Secret{token.NewSecret(sp.Namespace, time.Now()), {ObjectMeta: metav1.ObjectMeta{Name: "other"}}} {
		if _, err := sp.Kube.CoreV1().Secrets(sp.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for account, as := range accounts {
		config := sp.Config()
		as(config)
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		secrets := client.CoreV1().Secrets(sp.Namespace)
		if _, err := secrets.Get(t.Context(), token.SecretName, metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", account, err)
		}
		if _, err := secrets.Get(t.Context(), "other", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s reads another Secret: %v", account, err)
		}
		if err := secrets.Delete(t.Context(), token.SecretName, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s deletes the keys: %v", account, err)
		}
	}
}
