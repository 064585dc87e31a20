package execution

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads a Request from a JSON document. It is strict, because what it
// would let pass silently is a caller's mistake: unknown and repeated names,
// text that is not Unicode, values of another type. A member that is null
// counts as left out. The problem names the field, or the position where the
// document is not JSON.
func Decode(document []byte) (Request, *Problem) {
	var r Request
	if problem := decode(document, &r); problem != nil {
		return Request{}, problem
	}
	return r, nil
}

// decode fills what into points to, a struct of the contract.
func decode(document []byte, into any) *Problem {
	err := json.Unmarshal(document, into, json.RejectUnknownMembers(true), json.WithUnmarshalers(elements()))
	if err == nil {
		if kind := jsontext.Value(document).Kind(); kind != '{' {
			return notAnObject(kind)
		}
		return nil
	}
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntactic):
		return wrongSyntax(document, syntactic)
	case errors.As(err, &semantic):
		return wrongValue(semantic)
	}
	return NewProblem(ProblemMalformed, "The body cannot be read as a request.")
}

// wrongSyntax is the problem of a document that is not JSON.
func wrongSyntax(document []byte, err *jsontext.SyntacticError) *Problem {
	p := NewProblem(ProblemMalformed, "The body is not valid JSON: %s at %s.", reason(err.Err), position(document, err.ByteOffset))
	if errors.Is(err, jsontext.ErrDuplicateName) {
		p.Field = fieldPath(err.JSONPointer)
	}
	return p
}

// DecodeObject reads a JSON object whose members are of any kind, as strictly
// as Decode does.
func DecodeObject(document []byte) (map[string]jsontext.Value, *Problem) {
	var members map[string]jsontext.Value
	err := json.Unmarshal(document, &members)
	var syntactic *jsontext.SyntacticError
	switch kind := jsontext.Value(document).Kind(); {
	case errors.As(err, &syntactic):
		return nil, wrongSyntax(document, syntactic)
	case err != nil || kind != '{':
		return nil, notAnObject(kind)
	}
	return members, nil
}

func notAnObject(k jsontext.Kind) *Problem {
	return NewProblem(ProblemMalformed, "The body must be a JSON object, not %s.", kind(k))
}

// wrongValue is the problem of a document that is JSON but no Request.
func wrongValue(err *json.SemanticError) *Problem {
	field := fieldPath(err.JSONPointer)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return Invalid(field, "There is no field %q.", field)
	case err.JSONPointer == "":
		return notAnObject(err.JSONKind)
	case errors.Is(err, errNull):
		return Invalid(field, "The value must not be null.")
	case err.GoType == nil:
		return Invalid(field, "The value cannot be used here.")
	case err.JSONKind == '0' && isNumeric(err.GoType):
		return Invalid(field, "The number is out of range, or has a fraction where only whole numbers are allowed.")
	}
	return Invalid(field, "The value must be %s, not %s.", wanted(err.GoType), kind(err.JSONKind))
}

var errNull = errors.New("null as an element")

// elements makes null an error in arrays and in env, where it would otherwise
// become an empty value.
func elements() *json.Unmarshalers {
	return json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *string) error { return refuseNull(d) }),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, _ *File) error { return refuseNull(d) }),
	)
}

func refuseNull(d *jsontext.Decoder) error {
	if d.PeekKind() == 'n' {
		parent, _ := d.StackIndex(d.StackDepth())
		if parent == '[' || strings.HasPrefix(string(d.StackPointer()), "/env/") {
			return errNull
		}
	}
	return errors.ErrUnsupported
}

// reason is a syntax error without the name of the library.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), "jsontext: ")
}

// position is a byte offset as people count.
func position(document []byte, offset int64) string {
	at := document[:min(int64(len(document)), max(0, offset))]
	line := bytes.Count(at, []byte("\n")) + 1
	column := len(at) - (bytes.LastIndexByte(at, '\n') + 1) + 1
	return fmt.Sprintf("byte %d (line %d, column %d)", len(at), line, column)
}

// fieldPath writes a JSON pointer as files[2].path.
func fieldPath(pointer jsontext.Pointer) string {
	var b strings.Builder
	list := false
	for token := range pointer.Tokens() {
		switch {
		case list:
			b.WriteString("[" + clip(token) + "]")
		case b.Len() > 0:
			b.WriteString("." + clip(token))
		default:
			b.WriteString(clip(token))
		}
		list = token == "args" || token == "files"
	}
	return b.String()
}

func kind(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	}
	return "an object"
}

// wanted says what JSON a Go type of the contract stands for.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "an object"
}

func isNumeric(t reflect.Type) bool { return t.Kind() == reflect.Int64 || t.Kind() == reflect.Float64 }
