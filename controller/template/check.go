package template

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// checker compares what a template says with the rules.
type checker struct {
	rules   map[string][]rule
	allowed []v1alpha1.Loosening
	// used are the loosenings that the template needs and names.
	used []v1alpha1.Loosening
	// refused says which fields are refused, and why.
	refused []string
}

// weak notes that a field needs a loosening.
func (c *checker) weak(l v1alpha1.Loosening, field string) {
	if !slices.Contains(c.allowed, l) {
		c.refused = append(c.refused, fmt.Sprintf("%s needs the loosening %s", field, l))
		return
	}
	if !slices.Contains(c.used, l) {
		c.used = append(c.used, l)
	}
}

// deny notes what no loosening allows.
func (c *checker) deny(field, why string) { c.refused = append(c.refused, field+": "+why) }

// object checks the fields of a struct.
func (c *checker) object(v reflect.Value, path string) { c.fieldsOf(v, v.Type().Name(), path) }

// fieldsOf checks the fields of a struct of which the rules call the type owner.
func (c *checker) fieldsOf(v reflect.Value, owner, path string) {
	for i := range v.NumField() {
		name, inline := jsonName(v.Type().Field(i))
		switch {
		case inline:
			c.fieldsOf(v.Field(i), owner, path)
		case absent(v.Field(i)):
		default:
			c.field(v.Field(i), owner+"."+name, path+"."+name)
		}
	}
}

func (c *checker) field(v reflect.Value, key, path string) {
	decided, ok := c.rules[key]
	if !ok {
		c.deny(path, "not on the list of what a template may say")
		return
	}
	v = deref(v)
	for _, r := range decided {
		if v.Kind() == reflect.Map {
			c.entries(r, v, path)
			continue
		}
		c.value(r, v.Interface(), path)
		if r.fields {
			c.inside(v, path)
		}
	}
}

func (c *checker) entries(r rule, v reflect.Value, path string) {
	for it := v.MapRange(); it.Next(); {
		key := it.Key().String()
		c.value(r, entry{key, it.Value().Interface()}, fmt.Sprintf("%s[%s]", path, key))
	}
}

func (c *checker) value(r rule, value any, path string) {
	switch {
	case r.except != nil && r.except(value):
	case r.needs != "":
		c.weak(r.needs, path)
	case r.why != "":
		c.deny(path, r.why)
	}
}

// inside checks a struct, or each struct of a list.
func (c *checker) inside(v reflect.Value, path string) {
	if v.Kind() != reflect.Slice {
		c.object(v, path)
		return
	}
	for i := range v.Len() {
		c.object(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

func deref(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// jsonName returns a field's name in a manifest, and whether the manifest has
// its fields in its place.
func jsonName(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, name == "" && f.Anonymous || strings.Contains(options, "inline")
}
