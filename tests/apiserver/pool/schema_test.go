package pool_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/preheat-dev/preheat/api/sandbox/v1alpha1"
)

// TestEveryFieldIsInTheSchema: a field that the schema lacks is dropped by the
// API server without a word.
func TestEveryFieldIsInTheSchema(t *testing.T) {
	client, err := apiextensions.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]any{
		"sandboxtemplates": v1alpha1.SandboxTemplate{}, "sandboxwarmpools": v1alpha1.SandboxWarmPool{}, "sandboxclaims": v1alpha1.SandboxClaim{},
	} {
		crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name+"."+v1alpha1.GroupName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fields := compare(t, name, reflect.TypeOf(kind), crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if fields < 10 {
			t.Errorf("only %d fields of %s were compared", fields, name)
		}
	}
}

// compare walks a type beside its schema and counts the fields.
func compare(t *testing.T, path string, typ reflect.Type, schema *apiextensionsv1.JSONSchemaProps) (n int) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ.Kind() == reflect.Slice && schema.Items != nil && schema.Items.Schema != nil:
		return compare(t, path+"[]", typ.Elem(), schema.Items.Schema)
	case typ.Kind() != reflect.Struct || len(schema.Properties) == 0:
		return 0
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-" || name == "metadata" && path == strings.Split(path, ".")[0]:
			continue
		case name == "": // inlined
			if f.Type != reflect.TypeFor[metav1.TypeMeta]() {
				n += compare(t, path, f.Type, schema)
			}
			continue
		}
		p, ok := schema.Properties[name]
		if !ok {
			t.Errorf("%s.%s is not in the schema", path, name)
			continue
		}
		n += 1 + compare(t, path+"."+name, f.Type, &p)
	}
	return n
}

// TestValidation: what the API server refuses, with the field that it names.
func TestValidation(t *testing.T) {
	sp := shared.Space(t)
	pool := func(spec string) string { return object("SandboxWarmPool", "p", spec) }
	claim := func(spec string) string { return object("SandboxClaim", "c", spec) }
	tmpl := func(spec string) string { return object("SandboxTemplate", "t", spec) }
	const ref = `"sandboxTemplateRef":{"name":"t"}`
	const pod = `"podTemplate":{"spec":{"containers":[{"name":"c","image":"i"}]}},"languages":[{"name":"python"}]`
	tests := []struct {
		object, wrong string
	}{
		{pool(`{` + ref + `,"replicas":2}`), ""},
		{pool(`{` + ref + `,"autoscaling":{"min":0,"max":5}}`), ""},
		{pool(`{` + ref + `}`), "exactly one of replicas and autoscaling"},
		{pool(`{` + ref + `,"replicas":2,"autoscaling":{"min":0,"max":5}}`), "exactly one of replicas and autoscaling"},
		{pool(`{` + ref + `,"replicas":-1}`), "spec.replicas"},
		{pool(`{` + ref + `,"replicas":1001}`), "spec.replicas"},
		{pool(`{` + ref + `,"replicas":5,"maxSandboxes":4}`), "replicas must not exceed maxSandboxes"},
		{pool(`{` + ref + `,"autoscaling":{"min":6,"max":5}}`), "min must not exceed max"},
		{pool(`{` + ref + `,"autoscaling":{"min":0,"max":5},"maxSandboxes":4}`), "autoscaling.max must not exceed maxSandboxes"},
		{pool(`{` + ref + `,"replicas":1,"maxSandboxes":10001}`), "spec.maxSandboxes"},
		{pool(`{` + ref + `,"replicas":1,"progressDeadlineSeconds":0}`), "spec.progressDeadlineSeconds"},
		{pool(`{` + ref + `,"replicas":1,"updateStrategy":{"rollingUpdate":{"maxUnavailable":-1}}}`), "maxUnavailable"},
		{pool(`{` + ref + `,"replicas":1,"maxAge":"1s"}`), "spec.maxAge"},
		{pool(`{` + ref + `,"replicas":1,"maxAge":"9000h"}`), "spec.maxAge"},
		{pool(`{` + ref + `,"replicas":1,"maxAge":"soon"}`), "spec.maxAge"},
		{pool(`{` + ref + `,"replicas":1,"updateStrategy":{"type":"Recreate","rollingUpdate":{"maxUnavailable":1}}}`), "rollingUpdate belongs to"},
		{pool(`{"replicas":1,"sandboxTemplateRef":{"name":""}}`), "spec.sandboxTemplateRef.name"},
		{strings.Replace(pool(`{`+ref+`,"replicas":1}`), `"p"`, `"`+strings.Repeat("p", 53)+`"`, 1), "no more than 52 characters"},
		{claim(`{"warmPoolRef":{"name":"p"}}`), ""},
		{claim(`{"warmPoolRef":{"name":"p"},"bindTimeoutSeconds":3601}`), "spec.bindTimeoutSeconds"},
		{claim(`{"warmPoolRef":{"name":"p"},"binding":"Me"}`), "spec.binding"},
		{claim(`{"warmPoolRef":{"name":"p"},"lifecycle":{"ttlSecondsAfterFinished":-1}}`), "ttlSecondsAfterFinished"},
		{claim(`{"warmPoolRef":{"name":"p"},"lifecycle":{"ttlSecondsAfterFinished":86401}}`), "ttlSecondsAfterFinished"},
		{strings.Replace(claim(`{"warmPoolRef":{"name":"p"}}`), `"c"`, `"`+strings.Repeat("c", 64)+`"`, 1), "no more than 63 characters"},
		{tmpl(`{` + pod + `}`), ""},
		{tmpl(strings.Replace(`{`+pod+`}`, `{"name":"python"}`, `{"name":"python"},{"name":"python"}`, 1)), "Duplicate value"},
		{tmpl(strings.Replace(`{`+pod+`}`, `{"name":"python"}`, ``, 1)), "spec.languages"},
		{tmpl(`{` + pod + `,"loosen":["Everything"]}`), "spec.loosen"},
		{tmpl(`{` + pod + `,"runnerPort":80}`), "spec.runnerPort"},
		{tmpl(strings.Replace(`{`+pod+`}`, `"python"`, `"Python 3"`, 1)), "languages[0].name"},
		{tmpl(strings.Replace(`{`+pod+`}`, `{"spec"`, `{"metadata":{"labels":{"sandbox.preheat.dev/state":"warm"}},"spec"`, 1)), "are set by the controller"},
	}
	for _, test := range tests {
		err := create(t, sp.Namespace, test.object)
		switch {
		case test.wrong == "" && err != nil:
			t.Errorf("%s: %v", test.object, err)
		case test.wrong != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.wrong)):
			t.Errorf("%s: err = %v, want invalid for %q", test.object, err, test.wrong)
		}
	}
}

func object(kind, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"sandbox.preheat.dev/v1alpha1","kind":%q,"metadata":{"name":%q},"spec":%s}`, kind, name, spec)
}

// create sends an object as it is, without keeping it.
func create(t *testing.T, namespace, object string) error {
	t.Helper()
	var meta metav1.TypeMeta
	if err := json.Unmarshal([]byte(object), &meta); err != nil {
		t.Fatal(err)
	}
	return shared.Preheat.SandboxV1alpha1().RESTClient().Post().Namespace(namespace).Resource(strings.ToLower(meta.Kind)+"s").
		Param("dryRun", metav1.DryRunAll).Body([]byte(object)).SetHeader("Content-Type", "application/json").Do(t.Context()).Error()
}

// TestColumns: what `kubectl get sandboxwarmpool` prints, by which names.
func TestColumns(t *testing.T) {
	client, err := apiextensions.NewForConfig(shared.Config())
	if err != nil {
		t.Fatal(err)
	}
	crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "sandboxwarmpools."+v1alpha1.GroupName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var columns, wide []string
	for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		if c.Priority == 0 {
			columns = append(columns, c.Name)
		} else {
			wide = append(wide, c.Name)
		}
	}
	if got := strings.Join(wide, " "); got != "Desired Warming Claimed Template Reason" {
		t.Errorf("wide columns %q", got)
	}
	if got := strings.Join(crd.Spec.Names.ShortNames, " "); got != "swp" {
		t.Errorf("short names %q, want swp", got)
	}
	// NAME comes by itself.
	if got := strings.Join(columns, " "); got != "Ready Age" {
		t.Errorf("columns %q, want Ready Age", got)
	}
	// A claim never changes.
	sp := shared.Space(t)
	sp.Create(&v1alpha1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.SandboxClaimSpec{WarmPoolRef: v1alpha1.Reference{Name: "p"}}})
	c := sp.Claim("c")
	c.Spec.BindTimeoutSeconds++
	if _, err := sp.Preheat.SandboxV1alpha1().SandboxClaims(sp.Namespace).Update(t.Context(), c, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a changed claim: err = %v, want invalid", err)
	}
}
