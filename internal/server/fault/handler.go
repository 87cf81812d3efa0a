package fault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Paths of the page: all faults, and the root of the paths of each.
const (
	Path = "/faults"
	Root = Path + "/"
)

const (
	group    = "fault.anykind.dev"
	version  = group + "/v1"
	maxSpec  = 64 << 10 // bytes of the body of a request
	maxCount = 1000     // of faults
)

var resource = schema.GroupResource{Group: group, Resource: "faults"}

// A Handler serves a Set to clients. The server authorizes their requests.
type Handler struct {
	set Set

	mu   sync.Mutex
	last int
	all  []*shown
}

// A shown fault has an id.
type shown struct {
	id       string
	spec     Spec
	injected *Injected
}

// document is a fault as clients see it.
type document struct {
	metav1.TypeMeta `json:",inline"`
	ID              string `json:"id"`
	Spec
	// Matched is the number of selected requests, and Count that of the affected ones.
	Matched int `json:"matched"`
	Count   int `json:"count"`
}

type documents struct {
	metav1.TypeMeta `json:",inline"`
	Items           []document `json:"items"`
}

// Within applies the faults to the requests of a handler.
func (h *Handler) Within(next http.Handler) http.Handler { return h.set.Within(next) }

// ServeHTTP serves the list of faults, and each of them.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, Path), "/")
	var answer any
	var err error
	code := http.StatusOK
	switch {
	case r.Method == http.MethodGet && id == "":
		answer = h.list()
	case r.Method == http.MethodGet:
		answer, err = h.get(id)
	case r.Method == http.MethodPost && id == "":
		code = http.StatusCreated
		answer, err = h.inject(w, r)
	case r.Method == http.MethodDelete:
		if err = h.remove(id); err == nil {
			request.AnswerStatus(w, r, metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: id, Group: group, Kind: resource.Resource}})
			return
		}
	case id == "":
		request.Allows(w, r, http.MethodGet, http.MethodPost, http.MethodDelete)
		return
	default:
		request.Allows(w, r, http.MethodGet, http.MethodDelete)
		return
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// inject injects the fault in the body of a request.
func (h *Handler) inject(w http.ResponseWriter, r *http.Request) (document, error) {
	one := &shown{}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSpec))
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&one.spec)
	}
	if err != nil {
		return document{}, status.BadRequest(`the body is no object such as {"verbs":["update"],"effect":{"type":"hangUp"}}: %v`, err)
	}
	f, err := one.spec.resolve()
	if err != nil {
		return document{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) >= maxCount {
		return document{}, status.Limited(fmt.Sprintf("the server has %d faults, which is the limit: delete some", maxCount))
	}
	if one.spec.Times == 0 {
		one.spec.Times = 1
	}
	h.last++
	one.id, one.injected = strconv.Itoa(h.last), h.set.Inject(f)
	h.all = append(h.all, one)
	return one.document(), nil
}

func (s *shown) document() document {
	d := document{TypeMeta: metav1.TypeMeta{Kind: "Fault", APIVersion: version}, ID: s.id, Spec: s.spec}
	d.Matched, d.Count = s.injected.Counts()
	return d
}

func (h *Handler) list() documents {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := documents{TypeMeta: metav1.TypeMeta{Kind: "FaultList", APIVersion: version}, Items: []document{}}
	for _, one := range h.all {
		list.Items = append(list.Items, one.document())
	}
	return list
}

func (h *Handler) get(id string) (document, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.IndexFunc(h.all, func(s *shown) bool { return s.id == id }); i >= 0 {
		return h.all[i].document(), nil
	}
	return document{}, status.NotFound(resource, id)
}

// remove removes a fault, or all for an empty id.
func (h *Handler) remove(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.all)
	h.all = slices.DeleteFunc(h.all, func(s *shown) bool {
		if id != "" && s.id != id {
			return false
		}
		s.injected.Remove()
		return true
	})
	if id != "" && len(h.all) == before {
		return status.NotFound(resource, id)
	}
	return nil
}
