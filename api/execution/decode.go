package execution

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads a Request from a JSON document. It is strict, because what it
// would let pass silently is a caller's mistake: unknown and repeated names,
// text that is not Unicode, values of another type. The problem names the
// field, or the position where the document is not JSON.
func Decode(document []byte) (Request, *Problem) {
	var r Request
	err := json.Unmarshal(document, &r, json.RejectUnknownMembers(true))
	if err == nil {
		return r, nil
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		p := NewProblem(ProblemMalformed, "The body is not valid JSON: %s at %s.", reason(syntactic.Err), position(document, syntactic.ByteOffset))
		if errors.Is(err, jsontext.ErrDuplicateName) {
			p.Field = fieldPath(syntactic.JSONPointer)
		}
		return Request{}, p
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		field := fieldPath(semantic.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return Request{}, Invalid(field, "There is no field of this name.")
		case field == "":
			return Request{}, NewProblem(ProblemMalformed, "The body must be a JSON object, not a %s.", kind(semantic.JSONKind))
		case semantic.JSONKind != 0 && semantic.GoType != nil:
			return Request{}, Invalid(field, "A JSON %s is not allowed here: the value must be %s.", kind(semantic.JSONKind), wanted(semantic.GoType.String()))
		}
		return Request{}, Invalid(field, "The value cannot be used here.")
	}
	return Request{}, NewProblem(ProblemMalformed, "The body cannot be read as a request.")
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
	for token := range pointer.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 31); err == nil && b.Len() > 0 {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

func kind(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '[':
		return "array"
	}
	return "object"
}

// wanted says what JSON a Go type of the contract stands for.
func wanted(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "an array"
	case goType == "string":
		return "a string"
	case strings.HasPrefix(goType, "int"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	}
	return "an object"
}
