package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/anykind/anykind/internal/object/request"
)

// maxAgent limits the user agent in an event.
const maxAgent = 1024

// truncated is the annotation of an event whose objects were removed for its size.
const truncated = "audit.k8s.io/truncated"

// An entry is an encoded event. Its JSON has no apiVersion and kind, as in a list.
type entry struct {
	event *auditv1.Event
	json  []byte
}

func encode(e *auditv1.Event) (entry, error) {
	data, err := appendEvent(make([]byte, 0, usual), e)
	return entry{e, data}, err
}

// usual is the length of most events without objects.
const usual = 1 << 10

// alone is the beginning of the JSON of an event that is no item of a list.
const alone = `{"kind":"Event","apiVersion":"audit.k8s.io/v1",`

// size returns the length of the entry as a line of a log.
func (e *entry) size() int64 { return int64(len(alone) + len(e.json)) }

// appendLine appends the event as a line of JSON.
func (e *entry) appendLine(dst []byte) []byte {
	dst = append(dst, alone...)
	dst = append(dst, e.json[1:]...)
	return append(dst, '\n')
}

// withoutObjects returns the entry without the objects of the request and the answer.
func (e *entry) withoutObjects() (entry, error) {
	short := *e.event
	short.RequestObject, short.ResponseObject = nil, nil
	short.Annotations = map[string]string{truncated: "true"}
	maps.Copy(short.Annotations, e.event.Annotations)
	return encode(&short)
}

// appendText appends the event as a line in the format legacy.
func (e *entry) appendText(dst []byte) []byte {
	ev := e.event
	user, groups, as, asGroups := "<none>", "<none>", "<self>", "<lookup>"
	if ev.User.Username != "" {
		user = ev.User.Username
		if len(ev.User.Groups) > 0 {
			groups = quoted(ev.User.Groups)
		}
	}
	if i := ev.ImpersonatedUser; i != nil {
		as = i.Username
		if i.Groups != nil {
			asGroups = quoted(i.Groups)
		}
	}
	namespace, response, ip := "<none>", "<deferred>", "<unknown>"
	if ev.ObjectRef != nil && ev.ObjectRef.Namespace != "" {
		namespace = ev.ObjectRef.Namespace
	}
	if ev.ResponseStatus != nil {
		response = fmt.Sprint(ev.ResponseStatus.Code)
	}
	if len(ev.SourceIPs) > 0 {
		ip = ev.SourceIPs[0]
	}
	return fmt.Appendf(dst, "%s AUDIT: id=%q stage=%q ip=%q method=%q user=%q groups=%q as=%q asgroups=%q user-agent=%q namespace=%q uri=%q response=\"%s\"\n",
		ev.RequestReceivedTimestamp.Format(time.RFC3339Nano), ev.AuditID, ev.Stage, ip, ev.Verb, user, groups, as, asGroups, ev.UserAgent, namespace, ev.RequestURI, response)
}

func quoted(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(out, ",")
}

// newEvent returns the event of a request with its metadata, for all stages.
func newEvent(q *request.Request, r *http.Request, received time.Time) auditv1.Event {
	e := auditv1.Event{
		AuditID: types.UID(q.AuditID), RequestURI: q.Prefix + r.URL.RequestURI(), Verb: q.Info.Verb, UserAgent: r.UserAgent(),
		RequestReceivedTimestamp: metav1.NewMicroTime(received),
	}
	if len(e.UserAgent) > maxAgent {
		e.UserAgent = e.UserAgent[:maxAgent] + "...TRUNCATED"
	}
	for _, ip := range utilnet.SourceIPs(r) {
		e.SourceIPs = append(e.SourceIPs, ip.String())
	}
	if q.User != nil {
		e.User = q.User.Info()
	}
	if i := &q.Info; i.IsResource {
		e.ObjectRef = &auditv1.ObjectReference{
			Namespace: i.Namespace, Name: i.Name, Resource: i.Resource, Subresource: i.Subresource, APIGroup: i.Group, APIVersion: i.Version,
		}
	}
	return e
}

// raw returns JSON as a part of an event.
func raw(data []byte) *runtime.Unknown {
	return &runtime.Unknown{Raw: data, ContentType: runtime.ContentTypeJSON}
}

// withoutManagers returns JSON of an object, a list or a Table without managedFields.
func withoutManagers(data []byte) []byte {
	var t map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if d.Decode(&t) != nil {
		return data
	}
	dropManagers(t)
	for _, list := range []string{"items", "rows"} {
		all, _ := t[list].([]any)
		for _, item := range all {
			item, _ := item.(map[string]any)
			dropManagers(item)
			inRow, _ := item["object"].(map[string]any)
			dropManagers(inRow)
		}
	}
	out, err := json.Marshal(t)
	if err != nil {
		return data
	}
	return out
}

func dropManagers(t map[string]any) {
	metadata, _ := t["metadata"].(map[string]any)
	delete(metadata, "managedFields")
}
