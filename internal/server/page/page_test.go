package page

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Text is escaped in an element, in an attribute and in the title.
func TestTextIsEscaped(t *testing.T) {
	const evil = `"><script>alert('1')</script>&lt;`
	p := New(evil)
	p.Add(`<p title="%s">%s</p>`, evil, evil)
	p.Link("/"+evil, evil)
	w := httptest.NewRecorder()
	p.Serve(w)
	body := w.Body.String()
	if strings.Contains(body, "<script") || strings.Contains(body, "alert('") {
		t.Errorf("text became markup:\n%s", body)
	}
	const shown = `&#34;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;lt;`
	if n := strings.Count(body, shown); n != 5 {
		t.Errorf("the text is there %d times, not 5:\n%s", n, body)
	}
	if !strings.HasPrefix(body, "<!DOCTYPE html>") || !strings.HasSuffix(body, "</html>\n") || strings.Contains(body, "%!") {
		t.Errorf("not a page:\n%s", body)
	}
}
