package template

import (
	"reflect"

	"github.com/preheat-dev/preheat/api/sandbox/token"
)

// keys refuses a value that names the Secret of the sandboxes' keys, whatever
// loosening the template names: with them a program could make the token of each
// sandbox.
var keys = refuse("the Secret " + token.SecretName + " has the keys of all sandboxes").unless(not(namesKeys))

// namesKeys reports whether the name of that Secret is anywhere in a value, also
// where a driver of volumes reads it as one of its own attributes.
func namesKeys(value any) bool { return mentions(reflect.ValueOf(value), token.SecretName) }

// mentions reports whether a string is in v, at any depth.
func mentions(v reflect.Value, text string) bool {
	switch v.Kind() {
	case reflect.String:
		return v.String() == text
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && mentions(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			if mentions(v.Field(i), text) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if mentions(v.Index(i), text) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if mentions(it.Value(), text) {
				return true
			}
		}
	}
	return false
}
