package look

import "html/template"

// iconFunc returns a function that draws an icon of 16 by 16 units in the text's color. Icons are
// hidden from screen readers, because the adjacent text or a label says the same. The function
// panics if the name does not exist, which a test of the templates detects.
func iconFunc() func(name string) template.HTML {
	bodies := icons()
	return func(name string) template.HTML {
		body, ok := bodies[name]
		if !ok {
			panic("look: no icon " + name)
		}
		return template.HTML(`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" ` +
			`aria-hidden="true" focusable="false">` + body + `</svg>`)
	}
}

// icons returns the drawings by name. They use strokes of 1.5 units; the stylesheet sets stroke and
// fill.
func icons() map[string]string {
	return map[string]string{
		"cloud": `<path d="M4.5 12.5h7a2.75 2.75 0 0 0 .4-5.47 4 4 0 0 0-7.73-.9A3.25 3.25 0 0 0 4.5 12.5z"/>`,
		"local": `<rect x="2.5" y="3" width="11" height="7.5" rx="1"/><path d="M1.5 13h13"/>`,
		"synced": `<path d="M4.5 12.5h7a2.75 2.75 0 0 0 .4-5.47 4 4 0 0 0-7.73-.9A3.25 3.25 0 0 0 4.5 12.5z"/>` +
			`<path d="m6.2 9 1.4 1.4 2.5-2.7"/>`,
		"lock": `<rect x="3" y="7" width="10" height="6.5" rx="1.25"/>` +
			`<path d="M5.25 7V5a2.75 2.75 0 0 1 5.5 0v2"/>`,
		"people": `<circle cx="6" cy="5.5" r="2.5"/>` +
			`<path d="M1.5 13.25a4.5 4.5 0 0 1 9 0M10.5 3.2a2.5 2.5 0 0 1 0 4.6M12.3 9.6a4.5 4.5 0 0 1 2.2 3.65"/>`,
		"audience": `<circle cx="6.5" cy="5.25" r="2.5"/><path d="M2 13.25a4.5 4.5 0 0 1 9 0M12.5 3.5v4M10.5 5.5h4"/>`,
		"person":   `<circle cx="8" cy="5.25" r="2.75"/><path d="M3 13.5a5 5 0 0 1 10 0"/>`,
		"building": `<path d="M3 13.5v-11h7v11M10 6.5h3v7M1.5 13.5h13M5.25 5.25h2.5M5.25 8h2.5M5.25 10.75h2.5"/>`,
		"down":     `<path d="M8 2.5v8M4.5 7.25 8 10.75l3.5-3.5M2.5 13.5h11"/>`,
		"up":       `<path d="M8 10.75v-8M4.5 6 8 2.5 11.5 6M2.5 13.5h11"/>`,
		"load": `<ellipse cx="8" cy="3.75" rx="5" ry="1.75"/>` +
			`<path d="M3 3.75v8.5c0 .97 2.24 1.75 5 1.75s5-.78 5-1.75v-8.5M3 8c0 .97 2.24 1.75 5 1.75S13 8.97 13 8"/>`,
		"more": `<g class="solid"><circle cx="3.5" cy="8" r="1.25"/><circle cx="8" cy="8" r="1.25"/>` +
			`<circle cx="12.5" cy="8" r="1.25"/></g>`,
		"search": `<circle cx="7" cy="7" r="4.25"/><path d="m10.25 10.25 3.5 3.5"/>`,
		"close":  `<path d="m4 4 8 8M12 4l-8 8"/>`,
		"check":  `<path d="m3 8.5 3.25 3.25L13 4.75"/>`,
		"warn": `<path d="M8 2.25 14.25 13H1.75L8 2.25zM8 6.25v3.25"/>` +
			`<circle class="solid" cx="8" cy="11.25" r=".75"/>`,
		"clock": `<circle cx="8" cy="8" r="5.75"/><path d="M8 4.75V8l2.25 1.5"/>`,
		"trash": `<path d="M2.5 4.25h11M6 4V2.5h4V4M4 4.25l.6 9.25h6.8l.6-9.25M6.75 7v4M9.25 7v4"/>`,
		"mask": `<path d="M2 4.5c4-1.5 8-1.5 12 0 0 5-2.5 8.5-6 8.5S2 9.5 2 4.5z"/>` +
			`<path d="M4.75 7h1.75M9.5 7h1.75"/>`,
		"camera":   `<path d="M2 5.25h2.75L6 3.25h4l1.25 2H14v7.5H2z"/><circle cx="8" cy="8.75" r="2.25"/>`,
		"target":   `<circle cx="8" cy="8" r="5.75"/><circle cx="8" cy="8" r="2.25"/>`,
		"activity": `<path d="M1.5 8.5h3L6.5 3l3 10 2-4.5h3"/>`,
		"tasks":    `<path d="M6.5 4h7.5M6.5 8h7.5M6.5 12h7.5M2 4l.9.9L4.5 3.2M2 8l.9.9 1.6-1.7M2 12l.9.9 1.6-1.7"/>`,
		"plus":     `<path d="M8 3v10M3 8h10"/>`,
		"refresh":  `<path d="M13.25 8A5.25 5.25 0 1 1 11.6 4.2L13.5 6M13.5 2.5V6H10"/>`,
		"key":      `<circle cx="5" cy="11" r="2.75"/><path d="m7 9 6-6M10.5 5.5l2 2"/>`,
		"home":     `<path d="M2 7.5 8 2.5l6 5M3.75 6.25v7.25h8.5V6.25M6.5 13.5V9.75h3v3.75"/>`,
		"next":     `<path d="m6 3 5 5-5 5"/>`,
		"back":     `<path d="m10 3-5 5 5 5"/>`,
	}
}
