package template

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// Blueprints keeps what Build makes of templates within a ceiling, until they
// change: the controllers ask for it at each event of a Pod.
type Blueprints struct {
	ceiling Ceiling

	mu    sync.Mutex
	built map[types.NamespacedName]built
}

// built is what came of Build for one version of a template's specification.
type built struct {
	uid        types.UID
	generation int64
	blueprint  *Blueprint
	err        error
}

// NewBlueprints returns an empty cache.
func NewBlueprints(ceiling Ceiling) *Blueprints {
	return &Blueprints{ceiling: ceiling, built: map[types.NamespacedName]built{}}
}

// Of returns the blueprint of t, which must not be changed, or a *RefusedError.
func (b *Blueprints) Of(t *v1alpha1.SandboxTemplate) (*Blueprint, error) {
	key := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	b.mu.Lock()
	defer b.mu.Unlock()
	if have, ok := b.built[key]; ok && have.uid == t.UID && have.generation == t.Generation {
		return have.blueprint, have.err
	}
	blueprint, err := Build(t, b.ceiling)
	b.built[key] = built{t.UID, t.Generation, blueprint, err}
	return blueprint, err
}

// forget drops what is kept of a template that is gone.
func (b *Blueprints) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.built, key)
}
