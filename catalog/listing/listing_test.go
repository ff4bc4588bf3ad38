package listing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
)

func build(t *testing.T, pages ...string) *listing.Listing {
	t.Helper()
	var b listing.Builder
	for _, page := range pages {
		if _, err := b.Add(listing.Tools, []byte(page)); err != nil {
			t.Fatalf("Add(%s): %v", page, err)
		}
	}
	return b.Done()
}

func TestBuilder(t *testing.T) {
	for _, tt := range []struct{ name, page, cursor, err string }{
		{"last page", `{"tools":[{"name":"a"}]}`, "", ""},
		{"more pages", `{"tools":[],"nextCursor":"x"}`, `"x"`, ""},
		{"an empty cursor is a cursor", `{"tools":[],"nextCursor":""}`, `""`, ""},
		{"null is none", `{"tools":[],"nextCursor":null}`, "", ""},
		{"no object", `[]`, "", "no object"},
		{"no list", `{"tools":{}}`, "", `no list "tools"`},
		{"missing", `{}`, "", `no list "tools"`},
	} {
		var b listing.Builder
		cursor, err := b.Add(listing.Tools, []byte(tt.page))
		if string(cursor) != tt.cursor || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %s gave %s, %v; want %s, %s", tt.name, tt.page, cursor, err, tt.cursor, tt.err)
		}
	}
}

func TestBuilderLimits(t *testing.T) {
	var b listing.Builder
	page := []byte(`{"tools":[` + strings.Repeat(`{},`, 999) + `{}]}`)
	var err error
	for pages := 0; err == nil; pages++ {
		if pages > listing.MaxItems/1000 {
			t.Fatal("no limit")
		}
		_, err = b.Add(listing.Tools, page)
	}
	if !errors.Is(err, listing.ErrTooMuch) {
		t.Errorf("got %v", err)
	}
}

func TestHashFollowsContent(t *testing.T) {
	a := build(t, `{"tools":[{"name":"a"},{"name":"b"}]}`)
	for name, tt := range map[string]struct {
		l    *listing.Listing
		same bool
	}{
		"the same":         {build(t, `{"tools":[{"name":"a"},{"name":"b"}]}`), true},
		"other pages":      {build(t, `{"tools":[{"name":"a"}]}`, `{"tools":[{"name":"b"}],"ttlMs":5}`), true},
		"another order":    {build(t, `{"tools":[{"name":"b"},{"name":"a"}]}`), false},
		"one changed byte": {build(t, `{"tools":[{"name":"a"},{"name": "b"}]}`), false},
		"one less":         {build(t, `{"tools":[{"name":"a"}]}`), false},
	} {
		if got := tt.l.Hash() == a.Hash(); got != tt.same {
			t.Errorf("%s: same hash %v, want %v", name, got, tt.same)
		}
	}
}

func TestStoredForm(t *testing.T) {
	raw := `{"name":"a\u00e9<","n":9007199254740993,"x":[1.0]}`
	var b listing.Builder
	if _, err := b.Add(listing.Tools, []byte(`{"tools":[`+raw+`, 7],"ttlMs":1500,"cacheScope":"private"}`)); err != nil {
		t.Fatal(err)
	}
	b.Version, b.ServerInfo, b.FetchedAt = "2025-06-18", []byte(`{"name":"s"}`), time.Unix(1700000000, 5).UTC()
	l := b.Done()
	back, err := listing.Decode(l.Encode("k"), "k")
	if err != nil {
		t.Fatal(err)
	}
	if back.Hash() != l.Hash() || string(back.Items(listing.Tools)[0].Raw) != raw || back.TTL != l.TTL || !back.Private || !back.FetchedAt.Equal(l.FetchedAt) || back.Version != l.Version {
		t.Errorf("%+v came back as %+v", l, back)
	}
	if _, err := listing.Decode(l.Encode("k"), "other"); err == nil {
		t.Error("taken for another configuration")
	}
}

func FuzzDecode(f *testing.F) {
	var b listing.Builder
	_, _ = b.Add(listing.Tools, []byte(`{"tools":[{"name":"a"}]}`))
	f.Add(b.Done().Encode("k"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		l, err := listing.Decode(stored, "k")
		if err != nil {
			return
		}
		if back, err := listing.Decode(l.Encode("k"), "k"); err != nil || back.Hash() != l.Hash() {
			t.Fatalf("%q does not come back: %v", stored, fmt.Sprint(err))
		}
	})
}
