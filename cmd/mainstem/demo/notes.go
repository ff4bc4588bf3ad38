package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/server"
)

// maxNotes bounds what a client can make the server keep.
const maxNotes = 10_000

// A note is one entry, as tools return it.
type note struct {
	ID    int      `json:"id"`
	Title string   `json:"title"`
	Text  string   `json:"text"`
	Kind  string   `json:"kind"`
	Tags  []string `json:"tags"`
	Place *place   `json:"place,omitempty"`
}

type place struct {
	Name string  `json:"name"`
	Lat  float64 `json:"lat,omitempty"`
	Lon  float64 `json:"lon,omitempty"`
}

func (n note) line() string {
	line := fmt.Sprintf("#%d %s (%s)", n.ID, n.Title, n.Kind)
	if n.Place != nil {
		line += ", " + n.Place.Name
	}
	return line + ": " + n.Text
}

// notes is the server's content.
type notes struct {
	mu   sync.Mutex // guards what follows
	all  []note     // by id
	last int        // the highest id ever given
}

func newNotes() *notes {
	weir, mill := &place{Name: "Upper weir", Lat: 51.752, Lon: -1.258}, &place{Name: "Old mill"}
	n := &notes{}
	for _, seed := range []note{
		{Title: "Grey heron", Text: "Stood an hour below the weir and took two roach. Unringed adult.", Kind: "sighting", Tags: []string{"bird", "weir"}, Place: weir},
		{Title: "Kingfisher", Text: "Two passes downstream before eight, one with a fish held head first: there are young.", Kind: "sighting", Tags: []string{"bird", "nest"}, Place: mill},
		{Title: "Water level", Text: "Gauge at 0.84 m, 6 cm above yesterday after rain in the hills.", Kind: "measurement", Tags: []string{"gauge"}, Place: weir},
		{Title: "Fish pass", Text: "The third step holds driftwood again. Bring the long rake.", Kind: "task", Tags: []string{"weir", "repair"}, Place: weir},
		{Title: "Otter spraint", Text: "Fresh on the flat stone under the footbridge, same as in March.", Kind: "sighting", Tags: []string{"mammal"}},
		{Title: "Reed bed", Text: "Cut only the northern half this year, after the warblers have left.", Kind: "task", Tags: []string{"reed", "bird"}},
	} {
		_, _, _ = n.add(seed)
	}
	return n
}

func (n *notes) add(one note) (string, any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.all) >= maxNotes {
		return "", nil, fmt.Errorf("the notebook is full: %d notes", maxNotes)
	}
	one.Kind = cmp.Or(one.Kind, "sighting")
	n.last++
	one.ID = n.last
	if one.Tags == nil {
		one.Tags = []string{}
	}
	n.all = append(n.all, one)
	return "Added " + one.line(), nil, nil
}

// find returns the notes that match, in order of id, and how many there are without limit.
func (n *notes) find(limit int, match func(note) bool) ([]note, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found, total := []note{}, 0
	for _, one := range n.all {
		if !match(one) {
			continue
		}
		total++
		if len(found) < limit {
			found = append(found, one)
		}
	}
	return found, total
}

const noteSchemas = `"$defs":{"Place":{"type":"object","description":"Where on the river.","properties":{"name":{"type":"string","minLength":1},"lat":{"type":"number","minimum":-90,"maximum":90},"lon":{"type":"number","minimum":-180,"maximum":180}},"required":["name"],"additionalProperties":false},` +
	`"Kind":{"type":"string","enum":["sighting","measurement","task"]}}`

const noteListSchema = `{"type":"object","properties":{"notes":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"title":{"type":"string"},"text":{"type":"string"},"kind":{"$ref":"#/$defs/Kind"},"tags":{"type":"array","items":{"type":"string"}},"place":{"$ref":"#/$defs/Place"}},"required":["id","title","text","kind","tags"]}},"total":{"type":"integer","minimum":0}},"required":["notes","total"],` + noteSchemas + `}`

type noteList struct {
	Notes []note `json:"notes"`
	Total int    `json:"total"`
}

// listed returns found as text, a line each, and as data.
func listed(found []note, total int) (string, any, error) {
	lines := make([]string, len(found), len(found)+1)
	for i, one := range found {
		lines[i] = one.line()
	}
	switch {
	case total == 0:
		lines = append(lines, "No notes.")
	case total > len(found):
		lines = append(lines, fmt.Sprintf("%d of %d notes.", len(found), total))
	}
	return strings.Join(lines, "\n"), noteList{found, total}, nil
}

func (n *notes) tools() []server.ServerTool {
	type searched struct {
		Query string
		Kind  *string
		Tags  []string
		Limit *int
	}
	type byID struct{ ID int }
	return []server.ServerTool{
		tool(definition{
			name: "search", title: "Search notes", reads: true,
			description: "Finds notes that contain every word of the query in title, text, tags or place.",
			input: `{"type":"object","properties":{"query":{"type":"string","description":"Words to look for."},"kind":{"anyOf":[{"$ref":"#/$defs/Kind"},{"type":"null"}],"default":null},` +
				`"tags":{"type":"array","description":"Only notes that have all of these.","items":{"type":"string"},"uniqueItems":true},"limit":{"type":"integer","minimum":1,"maximum":100,"default":20}},"required":["query"],` + noteSchemas + `}`,
			output: noteListSchema,
		}, func(a searched) (string, any, error) {
			return listed(n.find(limit(a.Limit), func(one note) bool {
				return one.has(a.Kind, a.Tags) && contains(a.Query, one.Title, one.Text, strings.Join(one.Tags, " "), one.where())
			}))
		}),
		tool(definition{
			name: "list", title: "List notes", reads: true,
			description: "Lists notes, oldest first.",
			input: `{"type":"object","properties":{"kind":{"anyOf":[{"$ref":"#/$defs/Kind"},{"type":"null"}]},"tags":{"type":"array","items":{"type":"string"}},` +
				`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20}},` + noteSchemas + `}`,
			output: noteListSchema,
		}, func(a searched) (string, any, error) {
			return listed(n.find(limit(a.Limit), func(one note) bool { return one.has(a.Kind, a.Tags) }))
		}),
		tool(definition{
			name: "get", title: "Read a note", reads: true,
			description: "Returns one note.",
			input:       `{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"]}`,
		}, func(a byID) (string, any, error) {
			found, _ := n.find(1, func(one note) bool { return one.ID == a.ID })
			if len(found) == 0 {
				return "", nil, fmt.Errorf("no note has the id %d", a.ID)
			}
			return found[0].line(), nil, nil
		}),
		tool(definition{
			name: "add", title: "Add a note",
			description: "Writes a note down and returns it with its id.",
			input: `{"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":200},"text":{"type":"string","maxLength":20000},"kind":{"allOf":[{"$ref":"#/$defs/Kind"}],"description":"What sort of note.","default":"sighting"},` +
				`"tags":{"type":"array","items":{"type":"string","maxLength":50},"maxItems":20},"place":{"anyOf":[{"$ref":"#/$defs/Place"},{"type":"null"}]}},"required":["title","text"],` + noteSchemas + `}`,
		}, n.add),
		tool(definition{
			name: "delete", title: "Delete a note", destroys: true,
			description: "Removes one note for good.",
			input:       `{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"]}`,
		}, func(a byID) (string, any, error) { return n.remove(a.ID) }),
	}
}

func (n *notes) remove(id int) (string, any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.all, func(one note) bool { return one.ID == id })
	if i < 0 {
		return "", nil, fmt.Errorf("no note has the id %d", id)
	}
	title := n.all[i].Title
	n.all = slices.Delete(n.all, i, i+1)
	return fmt.Sprintf("Deleted #%d %s", id, title), nil, nil
}

// has reports whether the note is of that kind, if one is wanted, and has all the tags.
func (n note) has(kind *string, tags []string) bool {
	if kind != nil && *kind != n.Kind {
		return false
	}
	return !slices.ContainsFunc(tags, func(tag string) bool { return !slices.Contains(n.Tags, tag) })
}

func (n note) where() string {
	if n.Place == nil {
		return ""
	}
	return n.Place.Name
}

// limit is how many entries to return when a client may have said.
func limit(wanted *int) int {
	if wanted == nil {
		return 20
	}
	return min(max(*wanted, 1), 100)
}
