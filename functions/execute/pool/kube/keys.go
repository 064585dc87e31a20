package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// errUnknownKey: a sandbox's token is made from a key that the Secret does not
// have. Nobody can use that sandbox.
var errUnknownKey = errors.New("unknown key")

// keyring makes the tokens of sandboxes. It reads the Secret with the keys when
// it meets a key that it does not know.
type keyring struct {
	secrets corev1client.SecretInterface
	// reading has room for the one who reads the Secret.
	reading chan struct{}

	mu   sync.Mutex
	keys token.Keys
}

func newKeyring(secrets corev1client.SecretInterface) *keyring {
	return &keyring{secrets: secrets, reading: make(chan struct{}, 1)}
}

// token returns a sandbox's token. Its error is errUnknownKey, or says why the
// keys could not be read.
func (k *keyring) token(ctx context.Context, pod *corev1.Pod) (string, error) {
	id := pod.Annotations[v1alpha1.AnnotationTokenKey]
	if id == "" {
		return env(pod, v1alpha1.EnvToken), nil
	}
	if t, ok := k.known(id, pod); ok {
		return t, nil
	}
	select {
	case k.reading <- struct{}{}:
		defer func() { <-k.reading }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if t, ok := k.known(id, pod); ok { // whoever read before has found it
		return t, nil
	}
	if err := k.read(ctx); err != nil {
		return "", err
	}
	t, ok := k.known(id, pod)
	if !ok {
		return "", fmt.Errorf("%w: %s is not in Secret %s", errUnknownKey, id, token.SecretName)
	}
	return t, nil
}

func (k *keyring) known(id string, pod *corev1.Pod) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys.Token(id, pod.Namespace, pod.Name)
}

func (k *keyring) read(ctx context.Context) error {
	secret, err := k.secrets.Get(ctx, token.SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the controller makes it with the first sandbox
	}
	if err != nil {
		return fmt.Errorf("read the Secret %s: %w", token.SecretName, err)
	}
	keys, _ := token.FromSecret(secret) // the controller logs what is wrong with it
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = keys
	return nil
}
