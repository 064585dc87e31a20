package warmpool

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/preheat-dev/preheat/api/sandbox/token"
	"github.com/preheat-dev/preheat/controller/template"
)

// Keys follows the Secrets with the keys of the sandboxes' tokens, one in each
// namespace, and makes those that are missing. It watches no other Secret.
type Keys struct {
	kube     kubernetes.Interface
	informer cache.SharedIndexInformer
	lister   corelisters.SecretLister
}

// NewKeys returns the keys of a namespace, or of all if it is empty.
func NewKeys(kube kubernetes.Interface, namespace string) *Keys {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer := coreinformers.NewFilteredSecretInformer(kube, namespace, 0, indexers, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, token.SecretName).String()
	})
	return &Keys{kube: kube, informer: informer, lister: corelisters.NewSecretLister(informer.GetIndexer())}
}

// Start begins to follow the keys and returns when those that exist are known.
// The caller ends it with stop.
func (k *Keys) Start(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	wait, err := controller.RunInformers(ctx.Done(), k.informer)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("follow the keys of the sandboxes: %w", err)
	}
	return func() { cancel(); wait() }, nil
}

// current returns the id of the current key of a namespace; empty if none is
// known.
func (k *Keys) current(namespace string) string {
	secret, err := k.lister.Secrets(namespace).Get(token.SecretName)
	if err != nil {
		return ""
	}
	keys, _ := token.FromSecret(secret) // who makes a sandbox logs what is wrong
	return keys.Current()
}

// admission returns what a new sandbox knows of its token. It makes the first
// key of a namespace.
func (k *Keys) admission(ctx context.Context, namespace, sandbox string) (template.Admission, error) {
	secret, err := k.lister.Secrets(namespace).Get(token.SecretName)
	if apierrors.IsNotFound(err) {
		secret, err = k.create(ctx, namespace)
	}
	if err != nil {
		return template.Admission{}, fmt.Errorf("get the Secret %s: %w", token.SecretName, err)
	}
	keys, err := token.FromSecret(secret)
	if err != nil {
		logging.FromContext(ctx).Warnw("Some keys of the sandboxes cannot be used", "error", err)
	}
	id := keys.Current()
	secretToken, ok := keys.Token(id, namespace, sandbox)
	if !ok {
		return template.Admission{}, fmt.Errorf("the Secret %s has no usable key", token.SecretName)
	}
	return template.Admission{Key: id, Hash: token.Hash(secretToken)}, nil
}

// create makes the Secret, or returns the one that others have made meanwhile.
func (k *Keys) create(ctx context.Context, namespace string) (*corev1.Secret, error) {
	client := k.kube.CoreV1().Secrets(namespace)
	secret, err := client.Create(ctx, token.NewSecret(namespace, time.Now()), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return client.Get(ctx, token.SecretName, metav1.GetOptions{})
	}
	return secret, err
}
