package console

import (
	"strconv"

	"snap/api"
	"snap/internal/look"
)

// overviewDays is how many days the overview shows.
const overviewDays = 30

// overviewPage is the data of overview.html.
type overviewPage struct {
	layout
	Days  []api.Day
	Today api.Day
	Pulls int
	Plots []look.Plot
}

func (s *Server) overview(v *visit) error {
	found, err := v.api.Overview(v.r.Context(), overviewDays)
	if err != nil {
		return err
	}
	data := overviewPage{layout: s.layout(v), Days: found.Days, Today: found.Days[len(found.Days)-1]}
	stored := look.Plot{Title: "Snapshots stored", Of: "Snapshots", Total: strconv.Itoa(data.Today.Snapshots) + " now"}
	bytes := look.Plot{Title: "Bytes stored", Of: "Stored", Total: look.Bytes(data.Today.Bytes) + " now"}
	pulls := look.Plot{Title: "Pulls per day", Of: "Pulls"}
	people := look.Plot{Title: "Active people per day", Of: "People"}
	for _, d := range found.Days {
		day := d.Start.Format("2 Jan")
		add := func(p *look.Plot, value int64, text string) {
			p.Points = append(p.Points, look.Point{When: day, Value: value, Text: text})
		}
		add(&stored, int64(d.Snapshots), strconv.Itoa(d.Snapshots))
		add(&bytes, d.Bytes, look.Bytes(d.Bytes))
		add(&pulls, int64(d.Pulls), strconv.Itoa(d.Pulls))
		add(&people, int64(d.People), strconv.Itoa(d.People))
		data.Pulls += d.Pulls
	}
	pulls.Total = strconv.Itoa(data.Pulls) + " in " + look.Plural(len(data.Days), "day", "days")
	data.Plots = []look.Plot{stored, bytes, pulls, people}
	return s.write(v, "overview.html", data)
}
