package nightly

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // containers have no zones

	"github.com/netresearch/go-cron"

	"snap"
)

// Slot is a wall-clock time in a schedule's time zone, such as 2026-11-23T03:17. It identifies a
// run: each slot has at most one run. Slots are compared as strings.
type Slot string

const slotFormat = "2006-01-02T15:04"

// Times is a schedule: a list of slots in a time zone.
//
// A slot that occurs twice, because clocks are set back, begins the first time. A slot that does
// not occur, because clocks are set forward, begins at the moment of the change.
type Times struct {
	spec cron.Schedule
	zone *time.Location
	text string // the fields and the zone; never empty
}

// never is a schedule without slots.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// parser accepts the five fields of cron, and names such as @daily. If both the day of the month
// and the day of the week are limited, a day matches if either of them does, as in cron.
var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor |
	cron.DowOrDom)

// Parse reads a schedule in the syntax of cron. It may begin with CRON_TZ=ZONE, which takes
// precedence over zone. Without either, the schedule is in UTC. An empty text is a schedule without
// slots.
func Parse(text, zone string) (Times, error) {
	fields := strings.TrimSpace(text)
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if rest, found := strings.CutPrefix(fields, prefix); found {
			zone, fields, _ = strings.Cut(rest, " ")
		}
	}
	at, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Times{}, snap.Usage(fmt.Sprintf("there is no time zone %q", zone),
			"use a name such as Europe/Berlin or UTC")
	}
	if text == "" {
		return Times{spec: never{}, zone: at, text: " " + at.String()}, nil
	}
	const hint = `use the five fields of cron, minute first: "17 3 * * *" is 3:17 every night`
	spec, err := parser.Parse(fields)
	if err != nil {
		return Times{}, snap.Usage(fmt.Sprintf("%q is not a schedule: %s", text, err), hint)
	}
	if _, ok := spec.(*cron.SpecSchedule); !ok { // @every has no times on a clock
		return Times{}, snap.Usage(fmt.Sprintf("%q is not a schedule with times of day", text), hint)
	}
	if spec.Next(time.Unix(0, 0).UTC()).IsZero() {
		return Times{}, snap.Usage(fmt.Sprintf("the schedule %q never occurs", text), hint)
	}
	return Times{spec: spec, zone: at, text: fields + " " + at.String()}, nil
}

// Wall returns a moment as the time on a clock in the schedule's time zone.
func (t Times) Wall(now time.Time) Slot { return Slot(now.In(t.zone).Format(slotFormat)) }

// Next returns the first slot that begins after now, or "" if there is none.
func (t Times) Next(now time.Time) (Slot, time.Time) {
	for wall := t.civil(t.Wall(now)).Add(-24 * time.Hour); ; { // clocks never change by more than a day
		wall = t.spec.Next(wall)
		if wall.IsZero() {
			return "", wall
		}
		slot := Slot(wall.Format(slotFormat))
		if at := t.At(slot); at.After(now) {
			return slot, at
		}
	}
}

// maxLookback limits how far back Due looks.
const maxLookback = 400 * 24 * time.Hour

// Due returns the newest slot that is later than the slot after and has begun by now, or "". The
// result earlier is the number of moments between these two slots at which other slots began.
func (t Times) Due(after Slot, now time.Time) (due Slot, earlier int) {
	wall := t.civil(after)
	if far := now.UTC().Add(-maxLookback); wall.Before(far) {
		wall = far
	}
	var begins time.Time
	for {
		wall = t.spec.Next(wall)
		slot := Slot(wall.Format(slotFormat))
		at := t.At(slot)
		if wall.IsZero() || at.After(now) {
			return due, earlier
		}
		if due != "" && !at.Equal(begins) {
			earlier++
		}
		due, begins = slot, at
	}
}

// civil returns a slot as a time in UTC, where every slot occurs once.
func (t Times) civil(s Slot) time.Time {
	at, err := time.Parse(slotFormat, string(s))
	if err != nil { // somebody edited the record
		return time.Time{}
	}
	return at
}

// At returns the moment at which a slot begins.
func (t Times) At(s Slot) time.Time {
	wall := t.civil(s)
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, t.zone)
	start, end := at.ZoneBounds()
	switch now := t.Wall(at); {
	case now > s: // the slot was skipped, and at is after the change
		return start.UTC()
	case now < s:
		return end.UTC()
	}
	if start.IsZero() {
		return at.UTC()
	}
	_, offset := at.Zone()
	_, before := start.Add(-time.Second).Zone()
	first := at.Add(time.Duration(offset-before) * time.Second)
	if first.Before(start) && t.Wall(first) == s {
		return first.UTC()
	}
	return at.UTC()
}
