package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

// maxEvents bounds what a client can make the server keep.
const maxEvents = 10_000

// An event is one entry, as tools return it.
type event struct {
	ID       int       `json:"id"`
	Title    string    `json:"title"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Calendar string    `json:"calendar"`
	Location string    `json:"location,omitempty"`
	Guests   []person  `json:"guests,omitempty"`
	Repeat   *repeat   `json:"repeat,omitempty"`
}

type person struct {
	Name  string `json:"name"`
	Email string `json:"email,omitempty"`
}

type repeat struct {
	Every string     `json:"every"`
	Until *time.Time `json:"until,omitempty"`
}

func (e event) line() string {
	line := fmt.Sprintf("#%d %s to %s: %s (%s)", e.ID, e.Start.Format("2006-01-02 15:04"), e.End.Format("15:04"), e.Title, e.Calendar)
	if e.Location != "" {
		line += ", " + e.Location
	}
	return line
}

// overlaps reports whether the event touches [from, to); a zero time is no bound.
func (e event) overlaps(from, to time.Time) bool {
	return (to.IsZero() || e.Start.Before(to)) && (from.IsZero() || e.End.After(from))
}

// calendar is the server's content.
type calendar struct {
	mu   sync.Mutex // guards what follows
	all  []event    // by start
	last int        // the highest id ever given
}

func newCalendar() *calendar {
	day := func(d, hour, minute int) time.Time { return time.Date(2026, time.May, d, hour, minute, 0, 0, time.UTC) }
	c := &calendar{}
	for _, seed := range []event{
		{Title: "Heron count", Start: day(4, 6, 0), End: day(4, 9, 0), Calendar: "work", Location: "Upper weir", Guests: []person{{Name: "Imogen Vale", Email: "imogen@river.example"}}},
		{Title: "Clear the fish pass", Start: day(5, 13, 0), End: day(5, 15, 30), Calendar: "work", Location: "Upper weir"},
		{Title: "Dentist", Start: day(6, 10, 15), End: day(6, 11, 0), Calendar: "private"},
		{Title: "River board", Start: day(7, 18, 0), End: day(7, 20, 0), Calendar: "work", Location: "Town hall", Guests: []person{{Name: "Tomas Rehn"}, {Name: "Adaeze Obi"}}},
		{Title: "Gauge calibration", Start: day(12, 9, 0), End: day(12, 10, 0), Calendar: "work", Repeat: &repeat{Every: "month"}},
	} {
		_, _, _ = c.create(seed)
	}
	return c
}

func (c *calendar) sort() {
	slices.SortFunc(c.all, func(a, b event) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) })
}

func (c *calendar) find(match func(event) bool) []event {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := []event{}
	for _, e := range c.all {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

const calendarSchemas = `"$defs":{"Moment":{"type":"string","format":"date-time","description":"RFC 3339, for example 2026-05-04T09:00:00Z."},"Calendar":{"type":"string","enum":["work","private"]},` +
	`"Person":{"type":"object","properties":{"name":{"type":"string","minLength":1},"email":{"type":"string","format":"email"}},"required":["name"]},` +
	`"Repeat":{"type":"object","properties":{"every":{"enum":["day","week","month","year"]},"until":{"$ref":"#/$defs/Moment"}},"required":["every"]}}`

const eventSchema = `{"type":"object","properties":{"id":{"type":"integer"},"title":{"type":"string"},"start":{"$ref":"#/$defs/Moment"},"end":{"$ref":"#/$defs/Moment"},"calendar":{"$ref":"#/$defs/Calendar"},"location":{"type":"string"},` +
	`"guests":{"type":"array","items":{"$ref":"#/$defs/Person"}},"repeat":{"$ref":"#/$defs/Repeat"}},"required":["id","title","start","end","calendar"]`

// Arguments of the tools.
type (
	searchedEvents struct {
		Query    string
		From, To time.Time
		Calendar *string
	}
	moved struct {
		ID         int
		Start, End time.Time
	}
	wantedTime struct {
		From, To time.Time
		Minutes  int
	}
)

func (c *calendar) tools() []server.ServerTool {
	span := `"from":{"$ref":"#/$defs/Moment","description":"Events that end after this."},"to":{"$ref":"#/$defs/Moment","description":"Events that start before this."},"calendar":{"anyOf":[{"$ref":"#/$defs/Calendar"},{"type":"null"}]}`
	return []server.ServerTool{
		tool(definition{
			name: "search", title: "Search events", reads: true,
			description: "Finds events by words of title, location or guests.",
			input:       `{"type":"object","properties":{"query":{"type":"string"},` + span + `},"required":["query"],` + calendarSchemas + `}`,
			output:      `{"type":"object","properties":{"events":{"type":"array","items":` + eventSchema + `}}},"required":["events"],` + calendarSchemas + `}`,
		}, c.search),
		tool(definition{
			name: "list_events", title: "List events", reads: true,
			description: "Lists events in order of time.",
			input:       `{"type":"object","properties":{` + span + `},` + calendarSchemas + `}`,
		}, c.search),
		tool(definition{
			name: "create_event", title: "Create an event",
			description: "Puts an event into the calendar.",
			input: `{"type":"object","properties":{"title":{"type":"string","minLength":1,"maxLength":200},"start":{"$ref":"#/$defs/Moment"},"end":{"$ref":"#/$defs/Moment"},"calendar":{"$ref":"#/$defs/Calendar","default":"work"},` +
				`"location":{"type":"string"},"guests":{"type":"array","items":{"$ref":"#/$defs/Person"},"maxItems":50},"repeat":{"oneOf":[{"type":"null"},{"$ref":"#/$defs/Repeat"}]}},"required":["title","start","end"],` + calendarSchemas + `}`,
			output: eventSchema + `,` + calendarSchemas + `}`,
		}, c.create),
		tool(definition{
			name: "move_event", title: "Move an event", destroys: true,
			description: "Gives an event another time. Without an end it keeps its length.",
			input:       `{"type":"object","properties":{"id":{"type":"integer","minimum":1},"start":{"$ref":"#/$defs/Moment"},"end":{"$ref":"#/$defs/Moment"}},"required":["id","start"],` + calendarSchemas + `}`,
			output:      eventSchema + `,` + calendarSchemas + `}`,
		}, c.move),
		tool(definition{
			name: "cancel_event", title: "Cancel an event", destroys: true,
			description: "Removes an event.",
			input:       `{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"]}`,
		}, c.cancel),
		tool(definition{
			name: "find_time", title: "Find free time", reads: true,
			description: "Returns the first stretch between two moments in which nothing is planned.",
			input:       `{"type":"object","properties":{"from":{"$ref":"#/$defs/Moment"},"to":{"$ref":"#/$defs/Moment"},"minutes":{"type":"integer","minimum":5,"maximum":1440,"default":60}},"required":["from","to"],` + calendarSchemas + `}`,
			output:      `{"type":"object","properties":{"start":{"$ref":"#/$defs/Moment"},"end":{"$ref":"#/$defs/Moment"}},"required":["start","end"],` + calendarSchemas + `}`,
		}, c.free),
	}
}

// search serves list_events too, whose query is empty.
func (c *calendar) search(a searchedEvents) (string, any, error) {
	found := c.find(func(e event) bool {
		texts := []string{e.Title, e.Location}
		for _, guest := range e.Guests {
			texts = append(texts, guest.Name, guest.Email)
		}
		return e.overlaps(a.From, a.To) && (a.Calendar == nil || *a.Calendar == e.Calendar) && contains(a.Query, texts...)
	})
	lines := make([]string, len(found))
	for i, e := range found {
		lines[i] = e.line()
	}
	if len(lines) == 0 {
		lines = append(lines, "No events.")
	}
	return strings.Join(lines, "\n"), map[string]any{"events": found}, nil
}

func (c *calendar) create(e event) (string, any, error) {
	if !e.End.After(e.Start) {
		return "", nil, fmt.Errorf("an event ends after its start (%s)", e.Start.Format(time.RFC3339))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= maxEvents {
		return "", nil, fmt.Errorf("the calendar is full: %d events", maxEvents)
	}
	e.Calendar = cmp.Or(e.Calendar, "work")
	c.last++
	e.ID = c.last
	c.all = append(c.all, e)
	c.sort()
	return "Created " + e.line(), e, nil
}

func (c *calendar) move(a moved) (string, any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.all, func(e event) bool { return e.ID == a.ID })
	if i < 0 {
		return "", nil, fmt.Errorf("no event has the id %d", a.ID)
	}
	e := c.all[i]
	if a.End.IsZero() {
		a.End = a.Start.Add(e.End.Sub(e.Start))
	}
	if !a.End.After(a.Start) {
		return "", nil, fmt.Errorf("an event ends after its start (%s)", a.Start.Format(time.RFC3339))
	}
	e.Start, e.End = a.Start, a.End
	c.all[i] = e
	c.sort()
	return "Moved " + e.line(), e, nil
}

func (c *calendar) cancel(a moved) (string, any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.all, func(e event) bool { return e.ID == a.ID })
	if i < 0 {
		return "", nil, fmt.Errorf("no event has the id %d", a.ID)
	}
	gone := c.all[i]
	c.all = slices.Delete(c.all, i, i+1)
	return "Cancelled " + gone.line(), nil, nil
}

func (c *calendar) free(a wantedTime) (string, any, error) {
	length := time.Duration(cmp.Or(a.Minutes, 60)) * time.Minute
	start := a.From
	for _, e := range c.find(func(e event) bool { return e.overlaps(a.From, a.To) }) {
		if !e.Start.Before(start.Add(length)) {
			break
		}
		if e.End.After(start) {
			start = e.End
		}
	}
	end := start.Add(length)
	if end.After(a.To) {
		return "", nil, fmt.Errorf("no %d minutes are free before %s", length/time.Minute, a.To.Format(time.RFC3339))
	}
	text := fmt.Sprintf("Free from %s to %s.", start.Format(time.RFC3339), end.Format(time.RFC3339))
	return text, map[string]time.Time{"start": start, "end": end}, nil
}
