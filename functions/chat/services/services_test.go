package services

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	v1 "knative.dev/serving/pkg/apis/serving/v1"
	"knative.dev/serving/pkg/client/clientset/versioned/fake"

	"github.com/preheat-dev/preheat/functions/chat"
)

func knative(name, partOf string, ready *apis.Condition) *v1.Service {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "functions", Labels: map[string]string{"app.kubernetes.io/part-of": partOf},
	}}
	if ready != nil {
		ready.Type = apis.ConditionReady
		s.Status.Conditions = duckv1.Conditions{*ready}
		s.Status.URL = apis.HTTP(name + ".example.com")
		s.Status.LatestReadyRevisionName = name + "-1"
	}
	return s
}

func TestServices(t *testing.T) {
	client := fake.NewSimpleClientset(
		knative("chat", "preheat", &apis.Condition{Status: "True"}),
		knative("execute", "preheat", &apis.Condition{Status: "False", Reason: "RevisionMissing", Message: strings.Repeat("no ", 300)}),
		knative("new", "preheat", nil),
		knative("other", "another", &apis.Condition{Status: "True"}),
		&v1.Revision{ObjectMeta: metav1.ObjectMeta{Name: "chat-1", Namespace: "functions"}, Status: v1.RevisionStatus{ActualReplicas: ptr.To[int32](3)}},
	)
	got, err := New(client.ServingV1(), "functions").Services(t.Context())
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := (chat.Service{Name: "chat", Ready: true, URL: "http://chat.example.com", Revision: "chat-1", Replicas: 3}); got[0] != want {
		t.Errorf("got %+v", got[0])
	}
	if s := got[1]; s.Name != "execute" || s.Ready || !strings.HasPrefix(s.Problem, "no ") || len(s.Problem) > longest+len("…") || s.Replicas != 0 {
		t.Errorf("got %+v", s)
	}
	if s := got[2]; s.Name != "new" || s.Ready || s.Problem == "" || s.URL != "" || s.Revision != "" {
		t.Errorf("got %+v", s)
	}
}

func TestServicesAreReadNowAndThen(t *testing.T) {
	client := fake.NewSimpleClientset(knative("chat", "preheat", nil))
	r := New(client.ServingV1(), "functions")
	now := time.Now()
	r.now = func() time.Time { return now }
	read := func() int {
		t.Helper()
		if _, err := r.Services(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(client.Actions())
	}
	counts := []int{read(), read()}
	now = now.Add(fresh)
	if counts = append(counts, read()); !slices.Equal(counts, []int{1, 1, 2}) {
		t.Errorf("requests: %v", counts)
	}
}

// A refusal is given again like an answer; the end of one reader is not.
func TestServicesThatCannotBeRead(t *testing.T) {
	client := fake.NewSimpleClientset()
	client.PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", errors.New("no"))
	})
	r := New(client.ServingV1(), "functions")
	gone, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("gone")
	cancel(cause)
	if _, err := r.Services(gone); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if _, err := r.Services(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("got %v", err)
		}
	}
	if n := len(client.Actions()); n > 2 {
		t.Errorf("%d requests", n)
	}
}
