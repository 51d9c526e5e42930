package methods

import (
	"bytes"
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours are of Okabe and Ito's palette, which colour-blind readers tell apart. Every panel
// also has the runs of the plain method, drawn first.
var (
	plainColour  = color.NRGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}
	methodColour = color.NRGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
)

const (
	columns     = 3
	panelWidth  = 7 * vg.Centimeter
	panelHeight = 5 * vg.Centimeter
)

// Plot draws success by sampled tokens as SVG: a panel a method, a line a seed, in grey the lines of
// the plain method from the same warm start. The same records give the same bytes.
func Plot(records []Record) ([]byte, error) {
	all := results(records)
	rows := (len(all) + columns - 1) / columns
	plots := make([][]*plot.Plot, rows)
	for i := range rows * columns {
		p := plot.New()
		if i < len(all) {
			p.Title.Text = all[i].method.Title
			p.X.Label.Text, p.Y.Label.Text = "thousand tokens", "success"
			p.Y.Min, p.Y.Max = 0, 1
			p.Add(plotter.NewGrid())
			for _, group := range []struct {
				runs   []Record
				colour color.NRGBA
			}{{plainOf(all, all[i].method).runs, plainColour}, {all[i].runs, methodColour}} {
				for _, r := range group.runs {
					if err := add(p, r, group.colour); err != nil {
						return nil, fmt.Errorf("plot %s: %w", r.Name(), err)
					}
				}
			}
		} else {
			p.HideAxes()
		}
		plots[i/columns] = append(plots[i/columns], p)
	}
	canvas := vgsvg.New(columns*panelWidth, vg.Length(rows)*panelHeight)
	ground := draw.New(canvas)
	ground.SetColor(color.White)
	ground.Fill(ground.Rectangle.Path())
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: 4 * vg.Millimeter, PadY: 4 * vg.Millimeter,
		PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadLeft: 2 * vg.Millimeter, PadRight: 2 * vg.Millimeter}
	for i, row := range plot.Align(plots, tiles, ground) {
		for j, at := range row {
			plots[i][j].Draw(at)
		}
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot methods: %w", err)
	}
	return b.Bytes(), nil
}

func add(to *plot.Plot, r Record, colour color.NRGBA) error {
	var line plotter.XYs
	for _, e := range r.Evaluations {
		line = append(line, plotter.XY{X: float64(e.Tokens) / 1000, Y: float64(e.Success)})
	}
	if len(line) == 0 {
		return nil
	}
	drawn, err := plotter.NewLine(line)
	if err != nil {
		return err
	}
	drawn.Color, drawn.Width = colour, 1.2
	to.Add(drawn)
	return nil
}
