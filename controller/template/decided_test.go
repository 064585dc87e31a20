package template

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// fieldWalk visits the fields that the rules are about.
type fieldWalk struct {
	t     *testing.T
	rules map[string][]rule
	// unvisited has the rules that no field was found for.
	unvisited map[string]bool
	visited   map[reflect.Type]bool
}

func (w *fieldWalk) object(typ reflect.Type) {
	if !w.visited[typ] {
		w.visited[typ] = true
		w.fieldsOf(typ, typ.Name())
	}
}

func (w *fieldWalk) fieldsOf(typ reflect.Type, owner string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, inline := jsonName(f)
		if inline {
			w.fieldsOf(f.Type, owner)
			continue
		}
		key := owner + "." + name
		decided, ok := w.rules[key]
		if !ok {
			w.t.Errorf("nobody has decided what a template may say in %s", key)
		}
		delete(w.unvisited, key)
		if !slices.ContainsFunc(decided, func(r rule) bool { return r.fields }) {
			continue
		}
		if elem := element(f.Type); elem.Kind() == reflect.Struct {
			w.object(elem)
		} else if elem.Kind() != reflect.Map {
			w.t.Errorf("%s has no fields to look at", key)
		}
	}
}

func element(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	return typ
}

// TestEveryFieldIsDecided fails for a field of a newer Kubernetes version until
// the rules have it, and for a rule of a field that is gone.
func TestEveryFieldIsDecided(t *testing.T) {
	all := rules(DefaultCeiling())
	w := &fieldWalk{t: t, rules: all, unvisited: map[string]bool{}, visited: map[reflect.Type]bool{}}
	for key := range all {
		w.unvisited[key] = true
	}
	w.object(reflect.TypeFor[v1alpha1.PodTemplate]())
	for _, key := range slices.Sorted(maps.Keys(w.unvisited)) {
		t.Errorf("the rule of %s is about no field that is looked at", key)
	}
	if len(w.visited) < 15 {
		t.Errorf("only %d types were looked at", len(w.visited))
	}
}

// TestUndecidedFieldIsRefused takes each rule away: a template that sets the
// field is refused by its path.
func TestUndecidedFieldIsRefused(t *testing.T) {
	with := v1alpha1.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sandbox", Image: "i"}}}}
	for key, path := range map[string]string{
		"PodTemplate.spec":   "spec.podTemplate.spec",
		"PodSpec.containers": "spec.podTemplate.spec.containers",
		"Container.image":    "spec.podTemplate.spec.containers[0].image",
	} {
		c := &checker{rules: rules(DefaultCeiling())}
		delete(c.rules, key)
		c.object(reflect.ValueOf(with), templatePath)
		if len(c.refused) != 1 || !strings.HasPrefix(c.refused[0], path+": ") {
			t.Errorf("without a rule of %s: refused %v", key, c.refused)
		}
	}
}
